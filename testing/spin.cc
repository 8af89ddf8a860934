#include "testing/spin.h"

#include <chrono>

namespace holdfast::testing {
namespace {

void SpinHost(const SpinParams& p) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(p.microseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

const Op& SpinOp() {
  static const Op op = MakeOp<SpinParams, SpinHost>("testing_spin", HOLDFAST_CUDA_TWIN(SpinCuda));
  return op;
}

}  // namespace holdfast::testing
