#include "tests/device/quantize_rows.h"
#include "tests/device/test_ops.h"

namespace holdfast {
namespace {

__device__ std::int64_t ThreadIndex() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void AddKernel(AddParams p) {
  const std::int64_t i = ThreadIndex();
  if (i < p.count) p.out[i] = p.a[i] + p.b[i];
}

__global__ void ScaleKernel(ScaleParams p) {
  const std::int64_t i = ThreadIndex();
  if (i < p.count) p.data[i] = p.data[i] * p.factor + p.offset;
}

__global__ void PokeKernel(PokeParams p) {
  if (ThreadIndex() == 0) *p.target = p.value;
}

__global__ void PeekKernel(PeekParams p) {
  if (ThreadIndex() == 0) *p.target = *p.source;
}

__device__ std::uint64_t Nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void SpinKernel(SpinParams p) {
  const std::uint64_t end = Nanoseconds() + p.microseconds * 1000;
  while (Nanoseconds() < end) {
  }
}

__global__ void QuantizeRowsKernel(QuantizeRowsParams p) {
  if (ThreadIndex() == 0) QuantizeRows(p);
}

}  // namespace

const void* AddCuda() { return reinterpret_cast<const void*>(&AddKernel); }
const void* ScaleCuda() { return reinterpret_cast<const void*>(&ScaleKernel); }
const void* PokeCuda() { return reinterpret_cast<const void*>(&PokeKernel); }
const void* PeekCuda() { return reinterpret_cast<const void*>(&PeekKernel); }
const void* SpinCuda() { return reinterpret_cast<const void*>(&SpinKernel); }
const void* QuantizeRowsCuda() { return reinterpret_cast<const void*>(&QuantizeRowsKernel); }

}  // namespace holdfast
