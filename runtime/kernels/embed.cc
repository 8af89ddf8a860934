#include "device/element.h"
#include "runtime/kernels/dense.h"
#include "runtime/kernels/launch.h"

namespace holdfast {
namespace {

template <typename T>
void EmbedHost(const EmbedParams& p) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::int32_t token = p.tokens[row];
    const bool known = token >= 0 && token < p.vocab;
    const T* from = static_cast<const T*>(p.table) + (known ? std::int64_t{token} * p.width : 0);
    float* to = p.out + row * p.width;
    for (std::int32_t i = 0; i < p.width; ++i) to[i] = known ? ToFloat(from[i]) : 0.0f;
  }
}

}  // namespace

const Op& EmbedOp(DType type) {
  static const Op f32 =
      MakeOp<EmbedParams, EmbedHost<float>>("embed_f32", HOLDFAST_CUDA_TWIN(EmbedF32Cuda));
  static const Op bf16 =
      MakeOp<EmbedParams, EmbedHost<Bf16>>("embed_bf16", HOLDFAST_CUDA_TWIN(EmbedBf16Cuda));
  return type == DType::kF32 ? f32 : bf16;
}

LaunchShape EmbedShape(const EmbedParams& p) { return BlockPerRow(p.rows); }

}  // namespace holdfast
