// Switches, counts, sizes and shares as people write them: one grammar for command lines and
// environment variables. Each refusal is kInvalidArgument with object = `name`, and says what was
// given and what may be.
#ifndef HOLDFAST_DEVICE_PARSE_H_
#define HOLDFAST_DEVICE_PARSE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace holdfast {

// What was given, fit for a message: in quotes, escaped, shortened if it is long.
std::string QuoteValue(const std::string& text);

// 1, true, yes, on or 0, false, no, off, in any case. Nothing else: an empty text is no answer.
inline constexpr char kBoolGrammar[] = "0, false, no, off or 1, true, yes, on";
absl::StatusOr<bool> ParseBool(const std::string& name, const std::string& text);

// Decimal digits and nothing else, below 2^63.
inline constexpr char kWholeGrammar[] = "a whole number below 2^63";
absl::StatusOr<std::int64_t> ParseWhole(const std::string& name, const std::string& text);

// A whole number of bytes, or of a binary unit: 4096, 512KiB, 256MiB, 80GiB, 1TiB. Below 2^63.
inline constexpr char kByteSizeGrammar[] = "a size like 4096, 256MiB or 80GiB";
absl::StatusOr<std::int64_t> ParseByteSize(const std::string& name, const std::string& text);

// A decimal in [0, 1] of at most 9 places, exactly, in parts of kShareOne: 0.92 -> 920000000.
inline constexpr std::int64_t kShareOne = 1'000'000'000;
inline constexpr char kShareGrammar[] = "a decimal from 0 to 1, of at most 9 places";
absl::StatusOr<std::int64_t> ParseShare(const std::string& name, const std::string& text);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_PARSE_H_
