#include "attention/kernels/mla_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "attention/kernels/mla_attention_tile.h"
#include "device/element.h"

namespace holdfast {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kTileKeys = 64;  // keys converted to float at a time: the tile stays in the cache

// A vector register of the host. Written out, because the compiler does not reorder sums by itself.
using Lanes __attribute__((vector_size(32))) = float;
constexpr int kLanes = sizeof(Lanes) / sizeof(float);  // every width here is a multiple of it

Lanes Load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}
void Store(const Lanes& lanes, float* to) { std::memcpy(to, &lanes, sizeof(lanes)); }

// sum of a[i] * b[i]. Four partial sums hide the latency of the additions.
float Dot(const float* a, const float* b, int count) {
  Lanes s0 = {}, s1 = {}, s2 = {}, s3 = {};
  int i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    s0 += Load(a + i) * Load(b + i);
    s1 += Load(a + i + kLanes) * Load(b + i + kLanes);
    s2 += Load(a + i + 2 * kLanes) * Load(b + i + 2 * kLanes);
    s3 += Load(a + i + 3 * kLanes) * Load(b + i + 3 * kLanes);
  }
  for (; i < count; i += kLanes) s0 += Load(a + i) * Load(b + i);
  const Lanes lanes = (s0 + s1) + (s2 + s3);
  float total = 0;
  for (int l = 0; l < kLanes; ++l) total += lanes[l];
  return total;
}

// to[i] += factor * from[i]
void AddScaled(float* to, const float* from, float factor, int count) {
  for (int i = 0; i < count; i += kLanes) Store(Load(to + i) + factor * Load(from + i), to + i);
}

template <typename T>
void Convert(const T* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = ToFloat(from[i]);
}

// The softmax of one head as far as its keys were seen: values are relative to the largest score.
struct HeadState {
  float maximum = -kInfinity;
  float sum = 0;
};

// One row: scratch is kept from row to row, contents are not.
template <typename T>
class RowAttention {
 public:
  explicit RowAttention(const MlaAttentionParams& p)
      : p_(p),
        width_(p.latent + p.rope),
        q_(static_cast<std::size_t>(p.heads) * width_),
        keys_(static_cast<std::size_t>(kTileKeys) * width_),
        out_(static_cast<std::size_t>(p.heads) * p.latent),
        heads_(p.heads) {}

  void Run(std::int64_t row) {
    Convert(static_cast<const T*>(p_.q) + row * p_.heads * width_, q_.data(),
            std::int64_t{p_.heads} * width_);
    std::fill(out_.begin(), out_.end(), 0.0f);
    std::fill(heads_.begin(), heads_.end(), HeadState());
    const std::int32_t length = std::max(p_.row_kv_length[row], 0);
    for (std::int32_t begin = 0; begin < length; begin += kTileKeys) {
      const int count = std::min(kTileKeys, length - begin);
      LoadKeys(row, begin, count);
      for (int head = 0; head < p_.heads; ++head) AddTile(head, count);
    }
    StoreRow(row, length == 0);
  }

 private:
  void LoadKeys(std::int64_t row, std::int32_t begin, int count) {
    const std::int32_t* table =
        p_.block_table + std::int64_t{p_.row_sequence[row]} * p_.table_stride;
    for (int j = 0; j < count; ++j) {
      const std::int32_t key = begin + j;
      const std::int64_t page = table[key / p_.page_tokens];
      const std::int64_t offset =
          page * p_.page_stride + p_.layer_offset + std::int64_t{key % p_.page_tokens} * width_;
      Convert(static_cast<const T*>(p_.cache) + offset, &keys_[j * width_], width_);
    }
  }

  void AddTile(int head, int count) {
    HeadState& state = heads_[head];
    float* out = &out_[static_cast<std::size_t>(head) * p_.latent];
    float scores[kTileKeys];
    float maximum = state.maximum;
    for (int j = 0; j < count; ++j) {
      scores[j] =
          p_.scale * Dot(&q_[static_cast<std::size_t>(head) * width_], &keys_[j * width_], width_);
      maximum = std::max(maximum, scores[j]);
    }
    const float correction = std::exp(state.maximum - maximum);  // first tile: exp(-inf) = 0
    state.maximum = maximum;
    state.sum *= correction;
    for (int i = 0; i < p_.latent; ++i) out[i] *= correction;
    for (int j = 0; j < count; ++j) {
      const float weight = std::exp(scores[j] - maximum);
      state.sum += weight;
      AddScaled(out, &keys_[j * width_], weight, p_.latent);
    }
  }

  void StoreRow(std::int64_t row, bool pad) {
    T* out = static_cast<T*>(p_.out) + row * p_.heads * p_.latent;
    for (int head = 0; head < p_.heads; ++head) {
      const HeadState& state = heads_[head];
      const float inverse = pad ? 0.0f : 1.0f / state.sum;
      for (int i = 0; i < p_.latent; ++i) {
        const std::int64_t at = std::int64_t{head} * p_.latent + i;
        out[at] = FromFloat<T>(out_[at] * inverse);
      }
      if (p_.lse != nullptr) {
        p_.lse[row * p_.heads + head] = pad ? -kInfinity : state.maximum + std::log(state.sum);
      }
    }
  }

  const MlaAttentionParams& p_;
  const int width_;
  std::vector<float> q_;     // (heads, width)
  std::vector<float> keys_;  // (kTileKeys, width)
  std::vector<float> out_;   // (heads, latent), relative to each head's maximum
  std::vector<HeadState> heads_;
};

template <typename T>
void MlaAttentionHost(const MlaAttentionParams& p) {
  RowAttention<T> attention(p);
  for (std::int64_t row = 0; row < p.rows; ++row) attention.Run(row);
}

}  // namespace

const Op& MlaAttentionOp(DType type) {
  static const Op f32 = MakeOp<MlaAttentionParams, MlaAttentionHost<float>>(
      "mla_attention_f32", HOLDFAST_CUDA_TWIN(MlaAttentionF32Cuda));
  static const Op bf16 = MakeOp<MlaAttentionParams, MlaAttentionHost<Bf16>>(
      "mla_attention_bf16", HOLDFAST_CUDA_TWIN(MlaAttentionBf16Cuda));
  return type == DType::kF32 ? f32 : bf16;
}

LaunchShape MlaAttentionShape(const MlaAttentionParams& p, DType type) {
  const auto groups = static_cast<std::uint32_t>((p.heads + kMlaHeads - 1) / kMlaHeads);
  const int element_bytes = static_cast<int>(DTypeBytes(type));
  return {
      .grid = {static_cast<std::uint32_t>(p.rows), groups},
      .block = {kMlaThreads},
      .shared_bytes = static_cast<std::uint32_t>(MlaSharedBytes(p.latent + p.rope, element_bytes))};
}

}  // namespace holdfast
