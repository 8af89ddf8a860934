// The two proofs by capturing again, for tests that want one of them alone.
#ifndef HOLDFAST_TESTING_RECAPTURE_H_
#define HOLDFAST_TESTING_RECAPTURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "testing/subject.h"

namespace holdfast::testing {

// Captures every graph once more and compares word by word: what differs, a line each. Everything
// is awake; nothing is replaced.
absl::StatusOr<std::vector<std::string>> CaptureAgain(Subject& subject);
// Captures every graph with all spans elsewhere and proves that exactly the arena's words moved, by
// exactly that much: what did not, a line each. Finds pointers that the audit cannot see and
// addresses that a step has kept. Tries several distances where addresses are in use.
absl::StatusOr<std::vector<std::string>> CaptureElsewhere(Subject& subject);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_RECAPTURE_H_
