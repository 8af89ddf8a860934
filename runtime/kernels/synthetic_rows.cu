#include "runtime/kernels/atomics.cuh"
#include "runtime/kernels/launch.h"
#include "runtime/kernels/synthetic_rows.h"

namespace holdfast {
namespace {

__global__ void __launch_bounds__(kRowThreads)
    SyntheticEmbedKernel(const __grid_constant__ SyntheticEmbedParams p) {
  const std::int32_t row = static_cast<std::int32_t>(blockIdx.x * kRowThreads + threadIdx.x);
  if (row >= p.rows) return;
  const std::int32_t token = p.tokens[row];
  const bool known = token >= 0 && token < p.vocab;
  const std::uint64_t word = known ? HashMix(p.table[token]) : 0;
  p.hidden[row] = word;
  AtomicAdd(p.salt, word);
}

__global__ void __launch_bounds__(kRowThreads)
    SyntheticLogitsKernel(const __grid_constant__ SyntheticLogitsParams p) {
  const std::int32_t row = p.logits_row[blockIdx.x];
  float* const logits = p.logits + static_cast<std::int64_t>(blockIdx.x) * p.vocab;
  for (int v = threadIdx.x; v < p.vocab; v += kRowThreads) {
    logits[v] = row < 0 ? 0.0f : SyntheticLogit(p.hidden[row], p.head[v], *p.digest);
  }
}

}  // namespace

const void* SyntheticEmbedCuda() { return reinterpret_cast<const void*>(&SyntheticEmbedKernel); }
const void* SyntheticLogitsCuda() { return reinterpret_cast<const void*>(&SyntheticLogitsKernel); }

}  // namespace holdfast
