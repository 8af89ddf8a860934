#include "tools/kernels/contents.h"

namespace holdfast {
namespace {

__global__ void ContentsKernel(const __grid_constant__ ContentsParams p) {
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < p.count; i += step) {
    p.words[i] = HashMix(p.seed + i);
  }
}

}  // namespace

const void* ContentsCuda() { return reinterpret_cast<const void*>(&ContentsKernel); }

}  // namespace holdfast
