// JSON from a file nobody vouches for: bounded before and while it is parsed, and never an
// exception.
#ifndef HOLDFAST_RUNTIME_JSON_H_
#define HOLDFAST_RUNTIME_JSON_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace holdfast {

struct JsonLimits {
  std::uint64_t max_bytes = 16 << 20;
  int max_depth = 32;                    // of arrays and objects in each other
  std::uint64_t max_values = 2'000'000;  // of all kinds: bounds the memory taken
};

// The value `text` holds. kCorrupted with object = `document` (a path, say) if it is not JSON (the
// byte is named), repeats a key within an object, or is beyond a limit.
absl::StatusOr<nlohmann::json> ParseJson(const std::string& text, const std::string& document,
                                         const JsonLimits& limits = {});

// A name out of a file, fit for a message: in quotes, escaped, shortened if it is long.
std::string QuoteName(const std::string& name);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_JSON_H_
