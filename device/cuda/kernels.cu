// The leaf hash and the word scan on the GPU: the same results as HashLeafOnHost and
// ScanWordsOnHost, in any order of threads.
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

// The known ranges and their counts live in shared memory: the request lies across the bus.
__global__ void __launch_bounds__(kScanBlockThreads) ScanWords(ScanWordsParams params) {
  __shared__ WordScan::Range ranges[kMaxScanRanges];
  __shared__ unsigned counts[kMaxScanRanges];
  WordScan& scan = *params.scan;
  const std::uint64_t low = scan.low, high = scan.high;
  const std::uint32_t range_count = scan.range_count;
  for (std::uint32_t i = threadIdx.x; i < range_count; i += kScanBlockThreads) {
    ranges[i].begin = scan.ranges[i].begin;
    ranges[i].end = scan.ranges[i].end;
    counts[i] = 0;
  }
  __syncthreads();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kScanBlockThreads;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kScanBlockThreads + threadIdx.x;
       i < params.words; i += stride) {
    const std::uint64_t word = params.data[i];
    if (word < low || word >= high) continue;
    const std::uint32_t range = FindScanRange(ranges, range_count, word);
    if (range < range_count) {
      atomicAdd(&counts[range], 1u);
      continue;
    }
    const std::uint64_t hit =
        atomicAdd_system(reinterpret_cast<unsigned long long*>(&scan.found), 1ull);
    if (hit < kMaxScanHits) {
      scan.hits[hit].offset = i * 8;
      scan.hits[hit].word = word;
    }
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < range_count; i += kScanBlockThreads) {
    if (counts[i] == 0) continue;
    atomicAdd_system(reinterpret_cast<unsigned long long*>(&scan.counts[i]),
                     static_cast<unsigned long long>(counts[i]));
  }
}

}  // namespace

const void* ScanWordsFunction() { return reinterpret_cast<const void*>(&ScanWords); }

const void* HashLeavesFunction() { return reinterpret_cast<const void*>(&HashLeaves); }

}  // namespace holdfast
