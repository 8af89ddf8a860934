// The leaf hash on the GPU: the same sum as HashLeafOnHost, in any order of threads.
#include "device/cuda/kernels.h"

namespace holdfast {
namespace {

constexpr unsigned kWarpThreads = 32;
constexpr unsigned kWarps = kHashBlockThreads / kWarpThreads;

__device__ std::uint64_t WarpSum(std::uint64_t value) {
  for (unsigned distance = kWarpThreads / 2; distance != 0; distance /= 2) {
    value += __shfl_down_sync(0xffffffffu, static_cast<unsigned long long>(value), distance);
  }
  return value;  // in lane 0
}

// The last word of a leaf whose size is no multiple of 8, padded with zero bytes.
__device__ std::uint64_t TailWord(const std::uint8_t* bytes, std::uint64_t count) {
  std::uint64_t word = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    word |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  }
  return word;
}

__global__ void __launch_bounds__(kHashBlockThreads) HashLeaves(HashLeavesParams params) {
  const std::uint64_t begin = blockIdx.x * kHashLeafBytes;
  const std::uint64_t left = params.bytes - begin;
  const std::uint64_t bytes = left < kHashLeafBytes ? left : kHashLeafBytes;
  const std::uint8_t* leaf = params.data + begin;

  Hash128 sum;
  const std::uint64_t words = bytes / 8;
  std::uint64_t first_single = 0;  // words before it are read in pairs
  if (reinterpret_cast<std::uint64_t>(leaf) % 16 == 0) {
    const std::uint64_t pairs = words / 2;
    const ulonglong2* pair = reinterpret_cast<const ulonglong2*>(leaf);
#pragma unroll 4
    for (std::uint64_t i = threadIdx.x; i < pairs; i += kHashBlockThreads) {
      const ulonglong2 two = pair[i];
      HashWord(sum, 2 * i, two.x);
      HashWord(sum, 2 * i + 1, two.y);
    }
    first_single = 2 * pairs;
  }
  const unsigned long long* word = reinterpret_cast<const unsigned long long*>(leaf);
  for (std::uint64_t i = first_single + threadIdx.x; i < words; i += kHashBlockThreads) {
    HashWord(sum, i, word[i]);
  }
  if (threadIdx.x == 0 && bytes % 8 != 0) {
    HashWord(sum, words, TailWord(leaf + words * 8, bytes % 8));
  }

  __shared__ std::uint64_t warp_lo[kWarps];
  __shared__ std::uint64_t warp_hi[kWarps];
  const std::uint64_t lo = WarpSum(sum.lo);
  const std::uint64_t hi = WarpSum(sum.hi);
  if (threadIdx.x % kWarpThreads == 0) {
    warp_lo[threadIdx.x / kWarpThreads] = lo;
    warp_hi[threadIdx.x / kWarpThreads] = hi;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    Hash128 total;
    for (unsigned warp = 0; warp < kWarps; ++warp) {
      total.lo += warp_lo[warp];
      total.hi += warp_hi[warp];
    }
    params.out[blockIdx.x] = HashFinish(total, bytes);
  }
}

}  // namespace

const void* HashLeavesFunction() { return reinterpret_cast<const void*>(&HashLeaves); }

}  // namespace holdfast
