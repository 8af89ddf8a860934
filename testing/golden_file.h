// Golden outputs in a file: bits of one build on one device, to be compared by later runs.
#ifndef HOLDFAST_TESTING_GOLDEN_FILE_H_
#define HOLDFAST_TESTING_GOLDEN_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "testing/outputs.h"

namespace holdfast::testing {

struct GoldenFile {
  std::string subject;     // whose outputs they are
  std::uint64_t seed = 0;  // of the inputs
  Outputs outputs;
};

// Little-endian, with a hash over everything at the end. Writes a new file and renames it: a reader
// sees the old one or the whole new one. kNotFound (cannot be written).
absl::Status SaveGolden(const std::string& path, const GoldenFile& golden);
// kNotFound; kCorrupted naming the file and what is wrong with it: truncated, another format, a
// hash that does not fit.
absl::StatusOr<GoldenFile> LoadGolden(const std::string& path);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_GOLDEN_FILE_H_
