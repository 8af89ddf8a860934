// Private to graphs/: running a step where its exceptions and errors stop, and capturing without
// the gate.
#ifndef HOLDFAST_GRAPHS_CAPTURE_H_
#define HOLDFAST_GRAPHS_CAPTURE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/step_context.h"
#include "graphs/graph.h"

namespace holdfast {

// The step's own error, prefixed by the graph's name; an exception it throws becomes
// kInvalidArgument.
absl::Status CallStep(const std::string& name, const Step& step, StepContext& context);

// CaptureStep for a caller that is inside the arena's gate: no transition runs, none can begin.
absl::StatusOr<std::unique_ptr<CapturedGraph>> CaptureAdmitted(Lane& lane, const std::string& name,
                                                               const Step& step,
                                                               const CaptureOptions& options);

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_CAPTURE_H_
