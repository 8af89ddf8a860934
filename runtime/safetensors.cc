#include "runtime/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/error.h"
#include "runtime/safetensors_header.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kLengthBytes = 8;  // of the little-endian header length at the start

absl::Status FileError(ErrorKind kind, const std::string& path, const char* call,
                       const std::string& what) {
  const int code = errno;
  return MakeError({.kind = kind, .object = path, .call = call, .code = code}, what);
}

// All of [offset, offset + bytes), or kCorrupted.
absl::Status ReadFully(int descriptor, const std::string& path, std::uint64_t offset,
                       std::uint64_t bytes, void* out) {
  char* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t n = pread(descriptor, to, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(ErrorKind::kCorrupted, path, "pread", "cannot be read");
    if (n == 0) {
      return MakeError({.kind = ErrorKind::kCorrupted, .object = path},
                       "became shorter while it was read");
    }
    to += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::uint64_t>(n);
  }
  return absl::OkStatus();
}

// The header's text, its length checked against the file's.
absl::StatusOr<std::string> ReadHeader(int descriptor, const std::string& path,
                                       std::uint64_t file_bytes) {
  if (file_bytes < kLengthBytes) {
    return MakeError(
        {.kind = ErrorKind::kCorrupted, .object = path, .need = kLengthBytes, .have = file_bytes},
        "is too short for a safetensors file");
  }
  std::array<unsigned char, kLengthBytes> raw;
  HOLDFAST_RETURN_IF_ERROR(ReadFully(descriptor, path, 0, kLengthBytes, raw.data()));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::uint64_t{raw[i]} << (8 * i);
  if (length > kSafetensorsMaxHeaderBytes) {
    return MakeError({.kind = ErrorKind::kCorrupted,
                      .object = path,
                      .need = length,
                      .have = kSafetensorsMaxHeaderBytes},
                     "claims a header longer than any may be: it is no safetensors file");
  }
  if (length > file_bytes - kLengthBytes) {
    return MakeError({.kind = ErrorKind::kCorrupted,
                      .object = path,
                      .need = length,
                      .have = file_bytes - kLengthBytes},
                     "has a header longer than the file");
  }
  std::string text(length, '\0');
  HOLDFAST_RETURN_IF_ERROR(ReadFully(descriptor, path, kLengthBytes, length, text.data()));
  return text;
}

}  // namespace

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      tensors_(std::move(other.tensors_)) {}

SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(tensors_, other.tensors_);
  return *this;
}

SafetensorsFile::~SafetensorsFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  SafetensorsFile file;
  file.path_ = path;
  // Non-blocking, so that a pipe of that name cannot hold us up; regular files do not care.
  file.descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor_ < 0)
    return FileError(ErrorKind::kNotFound, path, "open", "cannot be opened");
  struct stat info;
  if (fstat(file.descriptor_, &info) != 0) {
    return FileError(ErrorKind::kNotFound, path, "fstat", "cannot be examined");
  }
  if (!S_ISREG(info.st_mode)) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = path},
                     "is not a regular file");
  }
  const std::uint64_t file_bytes = static_cast<std::uint64_t>(info.st_size);
  HOLDFAST_ASSIGN_OR_RETURN(const std::string header,
                            ReadHeader(file.descriptor_, path, file_bytes));
  const std::uint64_t data_start = kLengthBytes + header.size();
  HOLDFAST_ASSIGN_OR_RETURN(
      file.tensors_, ParseSafetensorsHeader(header, path, data_start, file_bytes - data_start));
  return file;
}

absl::Status SafetensorsFile::Read(const TensorInfo& tensor, std::uint64_t offset,
                                   std::uint64_t bytes, void* out) const {
  if (offset > tensor.bytes || bytes > tensor.bytes - offset) {
    return MakeError(
        {.kind = ErrorKind::kInvalidArgument, .object = path_, .need = bytes, .have = tensor.bytes},
        absl::StrCat("bytes from ", offset, " on are not within the tensor"));
  }
  return ReadFully(descriptor_, path_, tensor.offset + offset, bytes, out);
}

}  // namespace holdfast
