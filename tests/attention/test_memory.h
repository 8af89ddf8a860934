// Device memory for tests of kernels: one window and chunk, handed out piece by piece, with a
// stream.
//
// Everything starts as bytes 0xFF, which is NaN in every float type: a kernel that reads what
// nobody wrote shows it. Between the pieces lie guards that no kernel may change. Errors throw,
// which ends the test.
#ifndef HOLDFAST_TESTS_ATTENTION_TEST_MEMORY_H_
#define HOLDFAST_TESTS_ATTENTION_TEST_MEMORY_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "device/bytes.h"
#include "device/device.h"

namespace holdfast {

inline void Require(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}
template <typename T>
T Require(absl::StatusOr<T> result) {
  Require(result.status());
  return *std::move(result);
}

class TestMemory {
 public:
  TestMemory(Device& device, std::uint64_t bytes) : device_(device) {
    bytes_ = AlignUp(bytes, device.info().granularity);
    stream_ = Require(device.CreateStream("test"));
    range_ = Require(device.ReserveAddress(bytes_, DeviceAddress{}));
    chunk_ = Require(device.CreateChunk(bytes_));
    Require(device.Map(range_.base, bytes_, chunk_));
    Require(device.SetAccess({range_.base, bytes_}, Access::kReadWrite));
    Require(device.Fill(*stream_, range_.base, kUnwritten, bytes_));
  }
  ~TestMemory() {
    device_.Synchronize(*stream_).IgnoreError();
    device_.Unmap({range_.base, bytes_}).IgnoreError();
    device_.ReleaseChunk(chunk_).IgnoreError();
    device_.FreeAddress(range_).IgnoreError();
  }
  TestMemory(const TestMemory&) = delete;
  TestMemory& operator=(const TestMemory&) = delete;

  Device& device() { return device_; }
  Stream& stream() { return *stream_; }

  // Room for `count` elements of 0xFF bytes, 256-byte aligned.
  template <typename T>
  T* Allocate(std::uint64_t count) {
    const std::uint64_t end = used_ + count * sizeof(T);
    const std::uint64_t next = AlignUp(end, kAlignment) + kAlignment;
    if (next > bytes_)
      throw std::runtime_error("test memory of " + FormatBytes(bytes_) + " is too small");
    T* address = (range_.base + used_).As<T>();
    guards_.push_back({end, next - end});
    used_ = next;
    return address;
  }
  template <typename T>
  T* Upload(const std::vector<T>& values) {
    T* address = Allocate<T>(values.size());
    Write(address, values);
    return address;
  }
  template <typename T>
  void Write(T* address, const std::vector<T>& values) {
    if (values.empty()) return;
    const std::uint64_t bytes = values.size() * sizeof(T);
    HostBuffer staging = Require(device_.AllocateHost(bytes));
    std::memcpy(staging.data(), values.data(), bytes);
    Require(device_.CopyToDevice(*stream_, AddressOf(address), staging.data(), bytes));
    Require(device_.Synchronize(*stream_));
  }
  // Waits for the stream.
  template <typename T>
  std::vector<T> Read(const T* address, std::uint64_t count) {
    std::vector<T> values(count);
    if (count == 0) return values;
    HostBuffer staging = Require(device_.AllocateHost(count * sizeof(T)));
    Require(device_.CopyToHost(*stream_, staging.data(), AddressOf(address), count * sizeof(T)));
    Require(device_.Synchronize(*stream_));
    std::memcpy(static_cast<void*>(values.data()), staging.data(), count * sizeof(T));
    return values;
  }

  template <typename Params>
  void Run(const Op& op, const LaunchShape& shape, const Params& params) {
    Require(holdfast::Launch(device_, *stream_, op, shape, params));
    Require(device_.Synchronize(*stream_));
  }

  // True if nothing was written past the end of any piece.
  bool GuardsIntact() {
    const std::vector<std::uint8_t> all = Read(range_.base.As<const std::uint8_t>(), used_);
    for (const auto& [begin, bytes] : guards_) {
      for (std::uint64_t i = begin; i < begin + bytes; ++i) {
        if (all[i] != kUnwritten) return false;
      }
    }
    return true;
  }

 private:
  static constexpr std::uint8_t kUnwritten = 0xFF;
  static constexpr std::uint64_t kAlignment = 256;

  static DeviceAddress AddressOf(const void* pointer) {
    return {reinterpret_cast<std::uint64_t>(pointer)};
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t bytes_ = 0;
  AddressRange range_;
  ChunkHandle chunk_;
  std::uint64_t used_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> guards_;  // (offset, bytes)
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_ATTENTION_TEST_MEMORY_H_
