#include "device/element.h"
#include "runtime/kernels/block_reduce.cuh"
#include "runtime/kernels/launch.h"
#include "runtime/kernels/mla_prepare.h"
#include "runtime/kernels/rope.h"

namespace holdfast {
namespace {

// Rotates the rope parts of `vectors` vectors; each thread takes whole pairs.
template <typename T, typename In>
__device__ void RotateVectors(const MlaPrepareParams& p, const float* table, int vectors,
                              const In* from, int from_stride, T* to, int to_stride) {
  const int half = p.rope / 2;
  for (int n = threadIdx.x; n < vectors * half; n += kRowThreads) {
    const int vector = n / half, i = n % half;
    const RopePair pair = Rotate(from + vector * from_stride, table, i, p.rope, p.interleaved != 0);
    to[vector * to_stride + i] = FromFloat<T>(pair.first);
    to[vector * to_stride + i + half] = FromFloat<T>(pair.second);
  }
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    MlaPrepareKernel(const __grid_constant__ MlaPrepareParams p) {
  __shared__ float partials[32];
  const std::int64_t row = blockIdx.x;
  const int width = p.latent + p.rope;
  const float* table = p.rope_table + std::int64_t{p.positions[row]} * p.rope;
  const std::int64_t slot =
      p.slots[row];  // one value a block: the barriers below are met by all or none
  if (slot >= 0) {
    const float* kv = p.kv + row * width;
    const T* weight = static_cast<const T*>(p.weight);
    T* key = static_cast<T*>(p.cache) + slot / p.page_tokens * p.page_stride + p.layer_offset +
             slot % p.page_tokens * width;
    const float inverse = BlockInverseRms(kv, p.latent, p.epsilon, partials);
    for (int i = threadIdx.x; i < p.latent; i += kRowThreads) {
      key[i] = FromFloat<T>(kv[i] * inverse * ToFloat(weight[i]));
    }
    RotateVectors(p, table, 1, kv + p.latent, 0, key + p.latent, 0);
  }
  const int q_width = p.nope + p.rope;
  RotateVectors(p, table, p.heads, static_cast<const T*>(p.q) + row * p.heads * q_width + p.nope,
                q_width, static_cast<T*>(p.q_full) + row * p.heads * width + p.latent, width);
}

}  // namespace

const void* MlaPrepareF32Cuda() { return reinterpret_cast<const void*>(&MlaPrepareKernel<float>); }
const void* MlaPrepareBf16Cuda() { return reinterpret_cast<const void*>(&MlaPrepareKernel<Bf16>); }

}  // namespace holdfast
