#include "tests/device/test_ops.h"

#include <chrono>

#include "tests/device/quantize_rows.h"

namespace holdfast {
namespace {

void AddHost(const AddParams& p) {
  for (std::int64_t i = 0; i < p.count; ++i) p.out[i] = p.a[i] + p.b[i];
}
void ScaleHost(const ScaleParams& p) {
  for (std::int64_t i = 0; i < p.count; ++i) p.data[i] = p.data[i] * p.factor + p.offset;
}
void PokeHost(const PokeParams& p) { *p.target = p.value; }
void PeekHost(const PeekParams& p) { *p.target = *p.source; }
void SpinHost(const SpinParams& p) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(p.microseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

void QuantizeRowsHost(const QuantizeRowsParams& p) { QuantizeRows(p); }

}  // namespace

const Op& AddOp() {
  static const Op op = MakeOp<AddParams, AddHost>("add", HOLDFAST_CUDA_TWIN(AddCuda));
  return op;
}
const Op& ScaleOp() {
  static const Op op = MakeOp<ScaleParams, ScaleHost>("scale", HOLDFAST_CUDA_TWIN(ScaleCuda));
  return op;
}
const Op& PokeOp() {
  static const Op op = MakeOp<PokeParams, PokeHost>("poke", HOLDFAST_CUDA_TWIN(PokeCuda));
  return op;
}
const Op& PeekOp() {
  static const Op op = MakeOp<PeekParams, PeekHost>("peek", HOLDFAST_CUDA_TWIN(PeekCuda));
  return op;
}
const Op& SpinOp() {
  static const Op op = MakeOp<SpinParams, SpinHost>("spin", HOLDFAST_CUDA_TWIN(SpinCuda));
  return op;
}

const Op& QuantizeRowsOp() {
  static const Op op = MakeOp<QuantizeRowsParams, QuantizeRowsHost>(
      "quantize_rows", HOLDFAST_CUDA_TWIN(QuantizeRowsCuda));
  return op;
}

}  // namespace holdfast
