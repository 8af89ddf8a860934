#include "device/element.h"
#include "runtime/kernels/block_reduce.cuh"
#include "runtime/kernels/dense.h"
#include "runtime/kernels/launch.h"

namespace holdfast {
namespace {

template <typename T>
__global__ void __launch_bounds__(kRowThreads) EmbedKernel(const __grid_constant__ EmbedParams p) {
  const std::int64_t row = blockIdx.x;
  const std::int32_t token = p.tokens[row];
  const bool known = token >= 0 && token < p.vocab;
  const T* from = static_cast<const T*>(p.table) + (known ? std::int64_t{token} * p.width : 0);
  float* to = p.out + row * p.width;
  for (int i = threadIdx.x; i < p.width; i += kRowThreads) to[i] = known ? ToFloat(from[i]) : 0.0f;
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    RmsNormKernel(const __grid_constant__ RmsNormParams p) {
  __shared__ float partials[32];
  const std::int64_t row = blockIdx.x;
  const std::int64_t source = p.row_index == nullptr ? row : p.row_index[row];
  T* out = static_cast<T*>(p.out) + row * p.out_stride;
  if (source < 0) {
    for (int i = threadIdx.x; i < p.width; i += kRowThreads) out[i] = FromFloat<T>(0.0f);
    return;
  }
  const float* in = p.in + source * p.in_stride;
  const T* weight = static_cast<const T*>(p.weight);
  const float inverse = BlockInverseRms(in, p.width, p.epsilon, partials);
  for (int i = threadIdx.x; i < p.width; i += kRowThreads) {
    out[i] = FromFloat<T>(in[i] * inverse * ToFloat(weight[i]));
  }
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    SiluMulKernel(const __grid_constant__ SiluMulParams p) {
  const T* gate = static_cast<const T*>(p.gate);
  const T* up = static_cast<const T*>(p.up);
  T* out = static_cast<T*>(p.out);
  const std::int64_t threads = std::int64_t{gridDim.x} * kRowThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kRowThreads + threadIdx.x; i < p.count;
       i += threads) {
    const float x = ToFloat(gate[i]);
    out[i] = FromFloat<T>(x / (1.0f + expf(-x)) * ToFloat(up[i]));
  }
}

}  // namespace

const void* EmbedF32Cuda() { return reinterpret_cast<const void*>(&EmbedKernel<float>); }
const void* EmbedBf16Cuda() { return reinterpret_cast<const void*>(&EmbedKernel<Bf16>); }
const void* RmsNormF32Cuda() { return reinterpret_cast<const void*>(&RmsNormKernel<float>); }
const void* RmsNormBf16Cuda() { return reinterpret_cast<const void*>(&RmsNormKernel<Bf16>); }
const void* SiluMulF32Cuda() { return reinterpret_cast<const void*>(&SiluMulKernel<float>); }
const void* SiluMulBf16Cuda() { return reinterpret_cast<const void*>(&SiluMulKernel<Bf16>); }

}  // namespace holdfast
