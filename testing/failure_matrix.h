// The failure matrix: every device call of sleep and wake is made to fail, one at a time, for every
// role, and what is left is compared with what was there before.
#ifndef HOLDFAST_TESTING_FAILURE_MATRIX_H_
#define HOLDFAST_TESTING_FAILURE_MATRIX_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device/call_table.h"
#include "device/device.h"

namespace holdfast::testing {

// The faults a negative control can plant; each must show.
enum class PlantedFailure {
  kNone,
  kLeak,       // a failed transition keeps a chunk
  kLostBytes,  // the retry brings back other bytes
};

struct FailureMatrixOptions {
  std::uint64_t seed = 1;  // of the contents
  PlantedFailure plant = PlantedFailure::kNone;
  std::vector<std::string> roles;                          // of FailureRoles; empty: all
  std::function<void(const std::string& stage)> on_stage;  // what begins now; may be null
};

// One kind of call in one transition of one role: its first, second, ... call failed in turn.
struct FailureCell {
  std::string transition;  // "first sleep", "later sleep", "wake"
  std::string role;        // as FailureRoles
  Call call = Call::kCount_;
  int calls = 0;       // how many the transition makes when nothing fails
  int unchanged = 0;   // state and all contents as before, the retry right
  int redeclared = 0;  // the same, but dropped contents came back as declared
  int unheard = 0;     // the transition did its work all the same
  std::uint64_t leaked_bytes = 0;
  std::vector<std::string> problems;  // anything else; "k: what"
};

struct FailureMatrix {
  std::string device;
  FailureMatrixOptions options;
  std::vector<FailureCell> cells;  // those with calls
  int tried() const;
  bool held() const;  // no problems, nothing leaked
};

// An error means that a rig could not be made: nothing was proved.
absl::StatusOr<FailureMatrix> RunFailureMatrix(Device& device, const FailureMatrixOptions& options);

std::string FailureMarkdown(const FailureMatrix& matrix);
std::string FailureJson(const FailureMatrix& matrix);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_FAILURE_MATRIX_H_
