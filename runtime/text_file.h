// A whole small text file as a string.
#ifndef HOLDFAST_RUNTIME_TEXT_FILE_H_
#define HOLDFAST_RUNTIME_TEXT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace holdfast {

// kNotFound if it cannot be opened or is no regular file, kCorrupted if it is longer than
// `max_bytes` (need, have) or cannot be read. The object is the path.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, std::uint64_t max_bytes);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_TEXT_FILE_H_
