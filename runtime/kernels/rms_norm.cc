#include "device/element.h"
#include "runtime/kernels/dense.h"
#include "runtime/kernels/launch.h"
#include "runtime/kernels/row_math.h"

namespace holdfast {
namespace {

template <typename T>
void RmsNormHost(const RmsNormParams& p) {
  const T* weight = static_cast<const T*>(p.weight);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::int64_t source = p.row_index == nullptr ? row : p.row_index[row];
    T* out = static_cast<T*>(p.out) + row * p.out_stride;
    if (source < 0) {
      for (std::int32_t i = 0; i < p.width; ++i) out[i] = FromFloat<T>(0.0f);
      continue;
    }
    const float* in = p.in + source * p.in_stride;
    const float inverse = InverseRms(in, p.width, p.epsilon);
    for (std::int32_t i = 0; i < p.width; ++i) {
      out[i] = FromFloat<T>(in[i] * inverse * ToFloat(weight[i]));
    }
  }
}

}  // namespace

const Op& RmsNormOp(DType type) {
  static const Op f32 =
      MakeOp<RmsNormParams, RmsNormHost<float>>("rms_norm_f32", HOLDFAST_CUDA_TWIN(RmsNormF32Cuda));
  static const Op bf16 = MakeOp<RmsNormParams, RmsNormHost<Bf16>>(
      "rms_norm_bf16", HOLDFAST_CUDA_TWIN(RmsNormBf16Cuda));
  return type == DType::kF32 ? f32 : bf16;
}

LaunchShape RmsNormShape(const RmsNormParams& p) { return BlockPerRow(p.rows); }

}  // namespace holdfast
