#include "runtime/kernels/mla_prepare.h"

#include "device/element.h"
#include "runtime/kernels/launch.h"
#include "runtime/kernels/rope.h"
#include "runtime/kernels/row_math.h"

namespace holdfast {
namespace {

template <typename T, typename In>
void RotateRow(const In* from, const float* table, const MlaPrepareParams& p, T* to) {
  const int half = p.rope / 2;
  for (int i = 0; i < half; ++i) {
    const RopePair pair = Rotate(from, table, i, p.rope, p.interleaved != 0);
    to[i] = FromFloat<T>(pair.first);
    to[i + half] = FromFloat<T>(pair.second);
  }
}

template <typename T>
void StoreKey(const MlaPrepareParams& p, std::int64_t row, const float* table) {
  const std::int64_t slot = p.slots[row];
  if (slot < 0) return;
  const int width = p.latent + p.rope;
  const float* kv = p.kv + row * width;
  const T* weight = static_cast<const T*>(p.weight);
  T* key = static_cast<T*>(p.cache) + slot / p.page_tokens * p.page_stride + p.layer_offset +
           slot % p.page_tokens * width;
  const float inverse = InverseRms(kv, p.latent, p.epsilon);
  for (int i = 0; i < p.latent; ++i) key[i] = FromFloat<T>(kv[i] * inverse * ToFloat(weight[i]));
  RotateRow(kv + p.latent, table, p, key + p.latent);
}

template <typename T>
void MlaPrepareHost(const MlaPrepareParams& p) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const float* table = p.rope_table + std::int64_t{p.positions[row]} * p.rope;
    StoreKey<T>(p, row, table);
    for (std::int64_t head = 0; head < p.heads; ++head) {
      const std::int64_t q_head = row * p.heads + head;
      RotateRow(static_cast<const T*>(p.q) + q_head * (p.nope + p.rope) + p.nope, table, p,
                static_cast<T*>(p.q_full) + q_head * (p.latent + p.rope) + p.latent);
    }
  }
}

}  // namespace

const Op& MlaPrepareOp(DType type) {
  static const Op f32 = MakeOp<MlaPrepareParams, MlaPrepareHost<float>>(
      "mla_prepare_f32", HOLDFAST_CUDA_TWIN(MlaPrepareF32Cuda));
  static const Op bf16 = MakeOp<MlaPrepareParams, MlaPrepareHost<Bf16>>(
      "mla_prepare_bf16", HOLDFAST_CUDA_TWIN(MlaPrepareBf16Cuda));
  return type == DType::kF32 ? f32 : bf16;
}

LaunchShape MlaPrepareShape(const MlaPrepareParams& p) { return BlockPerRow(p.rows); }

}  // namespace holdfast
