// What a worker process tells the one that watches it: one line of JSON an event.
#ifndef HOLDFAST_TESTING_RESULT_LINE_H_
#define HOLDFAST_TESTING_RESULT_LINE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "testing/proof.h"

namespace holdfast::testing {

struct WorkerEvent {
  enum class Kind {
    kLoaded,   // the subject's code or folder could be read; its name
    kStage,    // what begins now
    kProof,    // a result
    kControl,  // a result
    kDevice,   // the device's name
    kRefused,  // nothing could be looked at: why
    kDone,     // all that was asked for has been told
  };
  Kind kind = Kind::kDone;
  std::string text;                      // name, stage, device or reason
  std::optional<ProofResult> proof;      // kProof
  std::optional<ControlResult> control;  // kControl
};

// Without the line's end; holds none.
std::string WriteEvent(const WorkerEvent& event);
// kCorrupted for anything WriteEvent did not write.
absl::StatusOr<WorkerEvent> ReadEvent(const std::string& line);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_RESULT_LINE_H_
