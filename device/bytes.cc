#include "device/bytes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::uint64_t> CheckedMultiply(std::uint64_t a, std::uint64_t b,
                                              const std::string& what) {
  std::uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = what},
                     absl::StrCat(a, " * ", b, " does not fit 64 bits"));
  }
  return product;
}

absl::StatusOr<std::uint64_t> CheckedAdd(std::uint64_t a, std::uint64_t b,
                                         const std::string& what) {
  std::uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = what},
                     absl::StrCat(a, " + ", b, " does not fit 64 bits"));
  }
  return sum;
}

std::string FormatBytes(std::uint64_t bytes) {
  if (bytes < kKiB) return absl::StrCat(bytes, " B");
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / kKiB;
  int unit = 0;
  // 1023.95 would be printed as 1024.0: the next unit says it better.
  while (value >= 1023.95 && unit < 3) {
    value /= kKiB;
    ++unit;
  }
  return absl::StrFormat("%.1f %s (%d B)", value, kUnits[unit], bytes);
}

}  // namespace holdfast
