#include "heat/holdfast_ops.h"

#include "heat/ops.h"

namespace heat {

const holdfast::Op& FlowOp() {
  static const holdfast::Op op =
      holdfast::MakeOp<FlowParams, FlowHost>("heat_flow", HOLDFAST_CUDA_TWIN(FlowCuda));
  return op;
}
const holdfast::Op& SettleOp() {
  static const holdfast::Op op =
      holdfast::MakeOp<SettleParams, SettleHost>("heat_settle", HOLDFAST_CUDA_TWIN(SettleCuda));
  return op;
}

}  // namespace heat
