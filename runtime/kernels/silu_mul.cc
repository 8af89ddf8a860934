#include <algorithm>
#include <cmath>

#include "device/element.h"
#include "runtime/kernels/dense.h"
#include "runtime/kernels/launch.h"

namespace holdfast {
namespace {

constexpr std::int64_t kMostBlocks = 1 << 20;  // beyond it, threads take several elements

template <typename T>
void SiluMulHost(const SiluMulParams& p) {
  const T* gate = static_cast<const T*>(p.gate);
  const T* up = static_cast<const T*>(p.up);
  T* out = static_cast<T*>(p.out);
  for (std::int64_t i = 0; i < p.count; ++i) {
    const float x = ToFloat(gate[i]);
    out[i] = FromFloat<T>(x / (1.0f + std::exp(-x)) * ToFloat(up[i]));
  }
}

}  // namespace

const Op& SiluMulOp(DType type) {
  static const Op f32 =
      MakeOp<SiluMulParams, SiluMulHost<float>>("silu_mul_f32", HOLDFAST_CUDA_TWIN(SiluMulF32Cuda));
  static const Op bf16 = MakeOp<SiluMulParams, SiluMulHost<Bf16>>(
      "silu_mul_bf16", HOLDFAST_CUDA_TWIN(SiluMulBf16Cuda));
  return type == DType::kF32 ? f32 : bf16;
}

LaunchShape SiluMulShape(const SiluMulParams& p) {
  const std::int64_t blocks = (p.count + kRowThreads - 1) / kRowThreads;
  return {.grid = {static_cast<std::uint32_t>(std::min(blocks, kMostBlocks))},
          .block = {kRowThreads}};
}

}  // namespace holdfast
