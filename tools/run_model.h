// The model that `holdfast run` was asked for: a checkpoint's, or a synthetic stack.
#ifndef HOLDFAST_TOOLS_RUN_MODEL_H_
#define HOLDFAST_TOOLS_RUN_MODEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "device/device.h"
#include "device/dtype.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "tools/run_options.h"

namespace holdfast {

// kInvalidArgument unless exactly one of --model and --synthetic is given; errors as
// MlaModel::Open, ParseSyntheticSpec and SyntheticStack::Create. kUnsupported for a vocabulary that
// is not bytes.
absl::StatusOr<std::unique_ptr<Model>> OpenRunModel(const RunOptions& options,
                                                    const DeviceInfo& device, DType type);

// Of an engine that runs a synthetic stack: who decides on profiling, and what path gating saves
// here. Empty for other models.
absl::StatusOr<std::string> SyntheticText(Engine& engine);

// kCorrupted naming the first buffer whose bytes were not as its owner had put them, over all steps
// so far. OK for other models.
absl::Status CheckSynthetic(Engine& engine);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_RUN_MODEL_H_
