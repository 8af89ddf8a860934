// Matrix products of a pass that is only planned: no library is asked.
#ifndef HOLDFAST_RUNTIME_DRY_GEMM_H_
#define HOLDFAST_RUNTIME_DRY_GEMM_H_

#include <memory>

#include "device/gemm.h"

namespace holdfast {

// A plan that says what the product would ask of scratch, and cannot run.
std::unique_ptr<GemmPlan> EstimateGemm(const GemmSpec& spec);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_DRY_GEMM_H_
