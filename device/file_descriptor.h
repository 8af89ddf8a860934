// An open file of the operating system, closed on destruction: how a chunk travels to another
// process.
#ifndef HOLDFAST_DEVICE_FILE_DESCRIPTOR_H_
#define HOLDFAST_DEVICE_FILE_DESCRIPTOR_H_

#include <utility>

namespace holdfast {

// Move-only.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}  // takes it over
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    FileDescriptor taken(std::move(other));  // the old file is closed when it goes
    std::swap(fd_, taken.fd_);
    return *this;
  }
  ~FileDescriptor();

  int get() const { return fd_; }  // -1: none
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_FILE_DESCRIPTOR_H_
