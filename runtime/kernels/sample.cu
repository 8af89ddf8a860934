#include "runtime/kernels/block_reduce.cuh"
#include "runtime/kernels/sample_math.h"

namespace holdfast {
namespace {

constexpr int kBins = 256;  // one byte of the key
constexpr int kBinsPerLane = kBins / 32;
constexpr unsigned kAllLanes = 0xffffffffu;

struct Selection {
  std::uint32_t prefix;     // the bytes of the k-th largest key found so far, in place
  std::uint32_t remaining;  // its rank (1 = largest) among the keys with that prefix
};

// Counts the byte at `shift` of every key whose higher bytes equal the prefix's. Integer sums: any
// order of threads gives the same counts.
__device__ void CountBytes(const float* logits, int vocab, int shift, std::uint32_t prefix,
                           std::uint32_t* bins) {
  for (int begin = 0; begin < vocab; begin += kSampleThreads) {
    const int i = begin + static_cast<int>(threadIdx.x);
    unsigned bin = kBins;  // not counted
    if (i < vocab) {
      const std::uint32_t key = OrderedKey(logits[i]);
      const bool matches = shift == 24 || (key ^ prefix) >> (shift + 8) == 0;
      if (matches) bin = key >> shift & 0xffu;
    }
    // Logits share their high bytes: one addition for all lanes of a warp with the same bin.
    const unsigned same = __match_any_sync(kAllLanes, bin);
    const bool first = __ffs(static_cast<int>(same)) - 1 == static_cast<int>(threadIdx.x % 32);
    if (bin < kBins && first) atomicAdd(&bins[bin], static_cast<std::uint32_t>(__popc(same)));
  }
}

// Called by the first warp: narrows the selection to the bin that holds its rank, from the largest
// down.
__device__ Selection Narrow(const std::uint32_t* bins, int shift, Selection selection) {
  const int lane = threadIdx.x % 32;
  const int top = kBins - 1 - lane * kBinsPerLane;  // this lane's bins, downwards
  std::uint32_t mine = 0;
  for (int b = 0; b < kBinsPerLane; ++b) mine += bins[top - b];
  std::uint32_t upto = mine;  // in the bins of this lane and all lanes before it
  for (int step = 1; step < 32; step *= 2) {
    const std::uint32_t other = __shfl_up_sync(kAllLanes, upto, step);
    if (lane >= step) upto += other;
  }
  const bool holds = upto - mine < selection.remaining && selection.remaining <= upto;
  Selection found = selection;
  if (holds) {
    std::uint32_t rank = selection.remaining - (upto - mine);
    int bin = top;
    while (rank > bins[bin]) rank -= bins[bin--];
    found = {selection.prefix | static_cast<std::uint32_t>(bin) << shift, rank};
  }
  const int holder = __ffs(static_cast<int>(__ballot_sync(kAllLanes, holds))) - 1;
  found.prefix = __shfl_sync(kAllLanes, found.prefix, holder);
  found.remaining = __shfl_sync(kAllLanes, found.remaining, holder);
  return found;
}

// The key of the k-th largest logit, 1 <= k <= vocab, byte by byte from the highest. All threads
// call it.
__device__ std::uint32_t SelectKey(const float* logits, int vocab, std::uint32_t k) {
  __shared__ std::uint32_t bins[kBins];
  __shared__ Selection shared;
  Selection selection = {0, k};
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int b = threadIdx.x; b < kBins; b += kSampleThreads) bins[b] = 0;
    __syncthreads();
    CountBytes(logits, vocab, shift, selection.prefix, bins);
    __syncthreads();
    if (threadIdx.x < 32) {
      const Selection narrowed = Narrow(bins, shift, selection);
      if (threadIdx.x == 0) shared = narrowed;
    }
    __syncthreads();
    selection = shared;
  }
  return selection.prefix;
}

__device__ std::uint64_t Larger(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }

__global__ void __launch_bounds__(kSampleThreads)
    SampleKernel(const __grid_constant__ SampleParams p) {
  __shared__ std::uint64_t partials[32];
  const std::int64_t r = blockIdx.x;
  if (r == 0 && threadIdx.x == 0 && p.step_count != nullptr) ++*p.step_count;
  const SamplingRow row = p.rows[r];
  if (row.active == 0) {
    if (threadIdx.x == 0) p.tokens[r] = -1;
    return;
  }
  const float* logits = p.logits + r * p.vocab;
  const auto larger = [](std::uint64_t a, std::uint64_t b) { return Larger(a, b); };

  std::uint64_t best = 0;
  for (int i = threadIdx.x; i < p.vocab; i += kSampleThreads) {
    best = Larger(best, Choice(OrderedKey(logits[i]), i));
  }
  best = BlockReduce(best, partials, larger);
  if (!IsGreedy(row)) {
    const float largest = logits[ChosenIndex(best)];
    const bool limited = row.top_k > 0 && row.top_k < p.vocab;
    const std::uint32_t threshold = limited ? SelectKey(logits, p.vocab, row.top_k) : 0;
    best = 0;
    for (int i = threadIdx.x; i < p.vocab; i += kSampleThreads) {
      const std::uint32_t key = OrderedKey(logits[i]);
      if (key == 0 || key < threshold) continue;
      best = Larger(best, Choice(OrderedKey(SeededScore(row, logits[i], largest, i)), i));
    }
    best = BlockReduce(best, partials, larger);
  }
  if (threadIdx.x == 0) p.tokens[r] = ChosenIndex(best);
}

}  // namespace

const void* SampleCuda() { return reinterpret_cast<const void*>(&SampleKernel); }

}  // namespace holdfast
