// The verbs of the device tests: a fresh device and stream, memory that is given back, values up
// and down.
#ifndef HOLDFAST_TESTS_DEVICE_DEVICE_FIXTURE_H_
#define HOLDFAST_TESTS_DEVICE_DEVICE_FIXTURE_H_

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "device/bytes.h"
#include "device/device.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {

// A base that no small integers look like, and that thread sanitizer leaves free where it runs.
#if defined(__SANITIZE_THREAD__)
inline constexpr DeviceAddress kTestBase{0x7ed5'4000'0000};
#else
inline constexpr DeviceAddress kTestBase{0x2b5d'4000'0000};
#endif

// One chunk mapped read-write in a reservation of its own.
class MappedMemory {
 public:
  MappedMemory(Device& device, std::uint64_t bytes, DeviceAddress hint = {}) : device_(device) {
    bytes = AlignUp(bytes, device.info().granularity);
    absl::StatusOr<AddressRange> range = device.ReserveAddress(bytes, hint);
    EXPECT_THAT(range, IsOk());
    range_ = range.value();
    absl::StatusOr<ChunkHandle> chunk = device.CreateChunk(bytes);
    EXPECT_THAT(chunk, IsOk());
    chunk_ = chunk.value();
    EXPECT_THAT(device.Map(range_.base, range_.bytes, chunk_), IsOk());
    EXPECT_THAT(device.SetAccess(range_, Access::kReadWrite), IsOk());
  }
  ~MappedMemory() {
    EXPECT_THAT(device_.Unmap(range_), IsOk());
    EXPECT_THAT(device_.ReleaseChunk(chunk_), IsOk());
    EXPECT_THAT(device_.FreeAddress(range_), IsOk());
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  DeviceAddress base() const { return range_.base; }
  AddressRange range() const { return range_; }
  ChunkHandle chunk() const { return chunk_; }

 private:
  Device& device_;
  AddressRange range_;
  ChunkHandle chunk_;
};

class DeviceTest : public testing::Test {
 protected:
  explicit DeviceTest(std::unique_ptr<Device> device = TestDevice()) : device_(std::move(device)) {
    absl::StatusOr<std::unique_ptr<Stream>> stream = device_->CreateStream("test");
    EXPECT_THAT(stream, IsOk());
    stream_ = *std::move(stream);
  }

  std::uint64_t granularity() const { return device_->info().granularity; }

  template <typename T>
  void Upload(DeviceAddress to, const std::vector<T>& values) {
    const std::uint64_t bytes = values.size() * sizeof(T);
    absl::StatusOr<HostBuffer> buffer = device_->AllocateHost(bytes);
    ASSERT_THAT(buffer, IsOk());
    std::memcpy(buffer->data(), values.data(), bytes);
    ASSERT_THAT(device_->CopyToDevice(*stream_, to, buffer->data(), bytes), IsOk());
    ASSERT_THAT(device_->Synchronize(*stream_), IsOk());
  }

  template <typename T>
  std::vector<T> Download(DeviceAddress from, std::size_t count) {
    std::vector<T> values(count);
    absl::StatusOr<HostBuffer> buffer = device_->AllocateHost(count * sizeof(T));
    EXPECT_THAT(buffer, IsOk());
    EXPECT_THAT(device_->CopyToHost(*stream_, buffer->data(), from, count * sizeof(T)), IsOk());
    EXPECT_THAT(device_->Synchronize(*stream_), IsOk());
    std::memcpy(values.data(), buffer->data(), count * sizeof(T));
    return values;
  }

  std::vector<Hash128> Hash(AddressRange range) {
    const std::size_t leaves = (range.bytes + kHashLeafBytes - 1) / kHashLeafBytes;
    absl::StatusOr<HostBuffer> buffer = device_->AllocateHost(leaves * sizeof(Hash128));
    EXPECT_THAT(buffer, IsOk());
    Hash128* out = reinterpret_cast<Hash128*>(buffer->data());
    EXPECT_THAT(device_->HashLeaves(*stream_, range, out), IsOk());
    EXPECT_THAT(device_->Synchronize(*stream_), IsOk());
    return {out, out + leaves};
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_DEVICE_DEVICE_FIXTURE_H_
