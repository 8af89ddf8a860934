// The word scan on the GPU: the same results as ScanWordsOnHost, hits in any order.
#include "device/cuda/kernels.h"

namespace holdfast {
namespace {

// The known ranges and their counts live in shared memory: the request lies across the bus. The host
// looks at it when the kernel is done, so its atomics need not reach further than this GPU.
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
        atomicAdd(reinterpret_cast<unsigned long long*>(&scan.found), 1ull);
    if (hit < kMaxScanHits) {
      scan.hits[hit].offset = i * 8;
      scan.hits[hit].word = word;
    }
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < range_count; i += kScanBlockThreads) {
    if (counts[i] == 0) continue;
    atomicAdd(reinterpret_cast<unsigned long long*>(&scan.counts[i]),
                     static_cast<unsigned long long>(counts[i]));
  }
}

}  // namespace

const void* ScanWordsFunction() { return reinterpret_cast<const void*>(&ScanWords); }

}  // namespace holdfast
