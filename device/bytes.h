// Byte arithmetic that cannot wrap silently, and byte counts as people read them.
#ifndef HOLDFAST_DEVICE_BYTES_H_
#define HOLDFAST_DEVICE_BYTES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace holdfast {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

// The smallest multiple of `alignment` (a power of two, > 0) that is >= value. The caller
// guarantees value <= 2^64 - alignment.
constexpr std::uint64_t AlignUp(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}
constexpr std::uint64_t AlignDown(std::uint64_t value, std::uint64_t alignment) {
  return value & ~(alignment - 1);
}
constexpr bool IsPowerOfTwo(std::uint64_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}

// a * b or a + b; kInvalidArgument naming `what` if it does not fit 64 bits.
absl::StatusOr<std::uint64_t> CheckedMultiply(std::uint64_t a, std::uint64_t b,
                                              const std::string& what);
absl::StatusOr<std::uint64_t> CheckedAdd(std::uint64_t a, std::uint64_t b, const std::string& what);

// "17.5 MiB (18350080 B)"; below 1 KiB only "512 B".
std::string FormatBytes(std::uint64_t bytes);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_BYTES_H_
