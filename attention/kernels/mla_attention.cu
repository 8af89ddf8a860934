// Three phases a tile, a barrier between them: warps copy keys to shared memory; warp h scores head
// h (a lane a key) and turns the scores into weights; threads, each with 4 latent elements of 4
// heads, add the weighted keys. All orders of summation are fixed by the shape, so the same row
// gives the same bits anywhere.
#include "attention/kernels/mla_attention_tile.h"
#include "attention/kernels/vector.cuh"

namespace holdfast {
namespace {

constexpr int kWarps = kMlaThreads / 32;
constexpr int kKeysPerWarp = kMlaKeys / kWarps;
constexpr int kQuads = kMlaMaxLatent / 4;  // threads that share the latent elements of one head
constexpr int kHeadsPerThread = kMlaHeads * kQuads / kMlaThreads;
constexpr unsigned kAllLanes = 0xffffffffu;
static_assert(kHeadsPerThread == 4, "a thread reads the weights of its heads as one vector");
static_assert(kMlaKeys == 32, "a lane a key");

__device__ float NegativeInfinity() { return __int_as_float(static_cast<int>(0xff800000u)); }

__device__ float WarpMax(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, step));
  return value;
}
// The same bits in every lane: each step adds the same two numbers on both sides.
__device__ float WarpSum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
  return value;
}

// Elements from the cache's start to key `key` of the sequence.
__device__ std::int64_t KeyOffset(const MlaAttentionParams& p, const std::int32_t* table, int key) {
  const std::int64_t page = table[key / p.page_tokens];
  return page * p.page_stride + p.layer_offset +
         static_cast<std::int64_t>(key % p.page_tokens) * (p.latent + p.rope);
}

// Copies keys [begin, begin + count) to shared memory; warp w takes keys w, w + kWarps, ...
template <typename T>
__device__ void LoadKeys(const MlaAttentionParams& p, const std::int32_t* table, int begin,
                         int count, T* keys, int key_stride) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t mine = lane < count ? KeyOffset(p, table, begin + lane) : 0;
  const uint4* from[kKeysPerWarp];
  uint4* to[kKeysPerWarp];
#pragma unroll
  for (int i = 0; i < kKeysPerWarp; ++i) {
    const int key = warp + i * kWarps;
    from[i] = reinterpret_cast<const uint4*>(static_cast<const T*>(p.cache) +
                                             __shfl_sync(kAllLanes, mine, key));
    to[i] = reinterpret_cast<uint4*>(keys + key * key_stride);
  }
  const int vectors = (p.latent + p.rope) * static_cast<int>(sizeof(T)) / 16;
  for (int v = lane; v < vectors; v += 32) {
    uint4 values[kKeysPerWarp];
#pragma unroll
    for (int i = 0; i < kKeysPerWarp; ++i) {
      values[i] = warp + i * kWarps < count ? from[i][v] : uint4{};
    }
#pragma unroll
    for (int i = 0; i < kKeysPerWarp; ++i)
      to[i][v] = values[i];  // keys past the end: zeros, never used
  }
}

// q . key over `width` elements; four partial sums hide the latency of the additions.
template <typename T>
__device__ float Score(const float* q, const T* key, int width) {
  constexpr int kVector = 16 / sizeof(T);
  float sums[4] = {};
  for (int i = 0; i < width; i += kVector) {
    float a[kVector], b[kVector];
    LoadFloats(q + i, a);
    LoadFloats(key + i, b);
#pragma unroll
    for (int v = 0; v < kVector; ++v) sums[v % 4] = fmaf(a[v], b[v], sums[v % 4]);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <typename T>
__device__ void StorePad(const MlaAttentionParams& p, std::int64_t row, int first_head, int heads) {
  T* out = static_cast<T*>(p.out) + (row * p.heads + first_head) * p.latent;
  for (int i = threadIdx.x; i < heads * p.latent; i += kMlaThreads) out[i] = FromFloat<T>(0.0f);
  if (p.lse != nullptr && static_cast<int>(threadIdx.x) < heads) {
    p.lse[row * p.heads + first_head + threadIdx.x] = NegativeInfinity();
  }
}

template <typename T>
__global__ void __launch_bounds__(kMlaThreads, 2)
    MlaAttentionKernel(const __grid_constant__ MlaAttentionParams p) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int width = p.latent + p.rope;
  const int key_stride = MlaKeyStride(width, sizeof(T));
  float* q = reinterpret_cast<float*>(shared);          // (kMlaHeads, width)
  float* weights = q + kMlaHeads * width;               // (kMlaKeys, kMlaHeads)
  float* factors = weights + kMlaKeys * kMlaHeads;      // (kMlaHeads)
  T* keys = reinterpret_cast<T*>(factors + kMlaHeads);  // (kMlaKeys, key_stride)

  const std::int64_t row = blockIdx.x;
  const int first_head = blockIdx.y * kMlaHeads;
  const int heads = min(kMlaHeads, p.heads - first_head);
  const int length = p.row_kv_length[row];
  if (length <= 0) {
    StorePad<T>(p, row, first_head, heads);
    return;
  }
  const std::int32_t* table =
      p.block_table + static_cast<std::int64_t>(p.row_sequence[row]) * p.table_stride;
  const T* q_row = static_cast<const T*>(p.q) + (row * p.heads + first_head) * width;
  for (int i = threadIdx.x; i < heads * width; i += kMlaThreads) q[i] = ToFloat(q_row[i]);

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float scale = p.scale * 1.4426950408889634f;  // scores are kept in base 2
  float maximum = NegativeInfinity(), sum = 0;        // of head `warp`, equal in all its lanes

  const int element = static_cast<int>(threadIdx.x) % kQuads * 4;
  const int thread_head = static_cast<int>(threadIdx.x) / kQuads * kHeadsPerThread;
  const bool adds = element < p.latent;
  float out[kHeadsPerThread][4] = {};

  for (int begin = 0; begin < length; begin += kMlaKeys) {
    const int count = min(kMlaKeys, length - begin);
    __syncthreads();  // the last tile is no longer read; the first time: q is written
    LoadKeys(p, table, begin, count, keys, key_stride);
    __syncthreads();

    float weight = 0, factor = 1;
    if (warp < heads) {
      const float score = lane < count
                              ? scale * Score(q + warp * width, keys + lane * key_stride, width)
                              : NegativeInfinity();
      const float last = maximum;
      maximum = fmaxf(last, WarpMax(score));
      factor = exp2f(last - maximum);  // first tile: 2^-inf = 0
      weight = lane < count ? exp2f(score - maximum) : 0.0f;
      sum = sum * factor + WarpSum(weight);
    }
    weights[lane * kMlaHeads + warp] = weight;
    if (lane == 0) factors[warp] = factor;
    __syncthreads();

    if (adds) {
#pragma unroll
      for (int h = 0; h < kHeadsPerThread; ++h) {
        const float f = factors[thread_head + h];
#pragma unroll
        for (int e = 0; e < 4; ++e) out[h][e] *= f;
      }
#pragma unroll 4
      for (int key = 0; key < count;
           ++key) {  // not kMlaKeys: keys past the end are not multiplied by 0
        float value[4], w[kHeadsPerThread];
        LoadFloats(keys + key * key_stride + element, value);
        LoadFloats(weights + key * kMlaHeads + thread_head, w);
#pragma unroll
        for (int h = 0; h < kHeadsPerThread; ++h) {
#pragma unroll
          for (int e = 0; e < 4; ++e) out[h][e] = fmaf(w[h], value[e], out[h][e]);
        }
      }
    }
  }

  __syncthreads();  // factors are no longer read
  if (lane == 0 && warp < heads) {
    factors[warp] = 1.0f / sum;
    if (p.lse != nullptr) {
      p.lse[row * p.heads + first_head + warp] = maximum * 0.6931471805599453f + logf(sum);
    }
  }
  __syncthreads();
  if (!adds) return;
  T* out_row = static_cast<T*>(p.out) + (row * p.heads + first_head) * p.latent;
#pragma unroll
  for (int h = 0; h < kHeadsPerThread; ++h) {
    const int head = thread_head + h;
    if (head < heads) {
      const float f = factors[head];
#pragma unroll
      for (int e = 0; e < 4; ++e) out[h][e] *= f;
      StoreFloats(out[h], out_row + static_cast<std::int64_t>(head) * p.latent + element);
    }
  }
}

}  // namespace

const void* MlaAttentionF32Cuda() {
  return reinterpret_cast<const void*>(&MlaAttentionKernel<float>);
}
const void* MlaAttentionBf16Cuda() {
  return reinterpret_cast<const void*>(&MlaAttentionKernel<Bf16>);
}

}  // namespace holdfast
