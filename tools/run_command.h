// `holdfast run`: the main job, end to end. Loads a checkpoint, captures its graphs over a locked
// arena, generates, and proves that sleep and wake change nothing.
#ifndef HOLDFAST_TOOLS_RUN_COMMAND_H_
#define HOLDFAST_TOOLS_RUN_COMMAND_H_

#include "absl/status/statusor.h"
#include "tools/report.h"
#include "tools/run_options.h"

namespace holdfast {

// Runs everything. An error is bad input or a start that failed: nothing was proved. A report may
// say FAIL.
absl::StatusOr<RunReport> Run(const RunOptions& options);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_RUN_COMMAND_H_
