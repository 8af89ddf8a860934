// Writes and reads device memory in tests, through pinned buffers, and waits.
#ifndef HOLDFAST_TESTS_ALLOCATOR_BYTES_ON_DEVICE_H_
#define HOLDFAST_TESTS_ALLOCATOR_BYTES_ON_DEVICE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/device.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"

namespace holdfast {

using Bytes = std::vector<std::uint8_t>;

// `bytes` bytes that depend on seed and position.
inline Bytes Pattern(std::uint64_t bytes, std::uint64_t seed) {
  Bytes out(bytes);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (std::uint64_t at = 0; at < bytes; at += sizeof(state)) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    std::memcpy(out.data() + at, &state, std::min<std::uint64_t>(sizeof(state), bytes - at));
  }
  return out;
}

inline void WriteBytes(Device& device, Stream& stream, DeviceAddress to, const Bytes& bytes) {
  absl::StatusOr<HostBuffer> pinned = device.AllocateHost(bytes.size());
  ASSERT_OK(pinned);
  std::memcpy(pinned->data(), bytes.data(), bytes.size());
  ASSERT_OK(device.CopyToDevice(stream, to, pinned->data(), bytes.size()));
  ASSERT_OK(device.Synchronize(stream));
}

// Empty, with a failure recorded, if the range cannot be read.
inline Bytes ReadBytes(Device& device, Stream& stream, AddressRange range) {
  absl::StatusOr<HostBuffer> pinned = device.AllocateHost(range.bytes);
  EXPECT_OK(pinned);
  if (!pinned.ok()) return {};
  absl::Status status = device.CopyToHost(stream, pinned->data(), range.base, range.bytes);
  if (status.ok()) status = device.Synchronize(stream);
  EXPECT_OK(status);
  if (!status.ok()) return {};
  const auto* data = reinterpret_cast<const std::uint8_t*>(pinned->data());
  return Bytes(data, data + range.bytes);
}

inline bool AllBytesAre(const Bytes& bytes, std::uint8_t value) {
  for (const std::uint8_t byte : bytes) {
    if (byte != value) return false;
  }
  return !bytes.empty();
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_ALLOCATOR_BYTES_ON_DEVICE_H_
