#include "testing/toy_ops.h"

#include "testing/toy_math.h"

namespace holdfast::testing {
namespace {

void ToyMixHost(const ToyMixParams& p) { ToyMix(p); }
void ToyFinishHost(const ToyFinishParams& p) { ToyFinish(p); }

}  // namespace

const Op& ToyMixOp() {
  static const Op op = MakeOp<ToyMixParams, ToyMixHost>("toy_mix", HOLDFAST_CUDA_TWIN(ToyMixCuda));
  return op;
}
const Op& ToyFinishOp() {
  static const Op op =
      MakeOp<ToyFinishParams, ToyFinishHost>("toy_finish", HOLDFAST_CUDA_TWIN(ToyFinishCuda));
  return op;
}

}  // namespace holdfast::testing
