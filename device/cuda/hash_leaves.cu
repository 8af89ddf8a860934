// The leaf hash on the GPU: the same sums as HashLeafOnHost, in another order.
//
// A warp reads a tile with eight 16-byte loads a thread, all under way before the first is used:
// thread c gets strand c, and no word crosses threads before its strand is mixed. A leaf is shared
// by the blocks of one cluster, which add up through shared memory; so even a range of a hundred
// leaves keeps every multiprocessor busy, and nothing has to be zeroed or combined in a second
// pass. About 16 instructions a word.
#include "device/cuda/kernels.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define HOLDFAST_HASH_CLUSTER
#else
#define HOLDFAST_HASH_CLUSTER __cluster_dims__(8)
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#include <cooperative_groups.h>
#endif

namespace holdfast {
namespace {

constexpr unsigned kWarpThreads = 32;
constexpr unsigned kWarps = kHashBlockThreads / kWarpThreads;
static_assert(kWarpThreads == kHashTileStrands);

struct Strand {
  ulonglong2 unit[kHashStrandUnits];
};

// Thread c's strand of the whole tile at `tile`, which is read once: it need not stay in a cache.
template <bool kAligned>
__device__ void LoadStrand(Strand& strand, const std::uint8_t* tile, unsigned c) {
#pragma unroll
  for (unsigned u = 0; u < kHashStrandUnits; ++u) {
    const std::uint8_t* const at = tile + u * kHashRowBytes + c * kHashUnitBytes;
    if constexpr (kAligned) {
      strand.unit[u] = __ldcs(reinterpret_cast<const ulonglong2*>(at));
    } else {
      const auto* const words = reinterpret_cast<const unsigned long long*>(at);
      strand.unit[u] = {__ldcs(words), __ldcs(words + 1)};
    }
  }
}

// The word at `at`, of which `left` bytes exist; the others are zero.
__device__ unsigned long long LoadPartialWord(const std::uint8_t* at, std::int64_t left) {
  if (left >= 8) return *reinterpret_cast<const unsigned long long*>(at);
  unsigned long long word = 0;
  for (int i = 0; i < left; ++i) word |= static_cast<unsigned long long>(at[i]) << (8 * i);
  return word;
}

// The same where only `bytes` bytes of the tile exist.
__device__ void LoadPartialStrand(Strand& strand, const std::uint8_t* tile, std::uint64_t bytes,
                                  unsigned c) {
#pragma unroll
  for (unsigned u = 0; u < kHashStrandUnits; ++u) {
    const unsigned offset = u * kHashRowBytes + c * kHashUnitBytes;
    const std::int64_t left = static_cast<std::int64_t>(bytes) - offset;
    strand.unit[u] = {LoadPartialWord(tile + offset, left),
                      LoadPartialWord(tile + offset + 8, left - 8)};
  }
}

__device__ void AddStrand(Hash128& sum, std::uint64_t index, const Strand& strand) {
  HashStrand sums;
#pragma unroll
  for (unsigned u = 0; u < kHashStrandUnits; ++u) {
#pragma unroll
    for (unsigned j = 0; j < kHashLanes; ++j) {
      sums.lane[j] += HashProduct(strand.unit[u].x, HashKey(j, 2 * u));
      sums.lane[j] += HashProduct(strand.unit[u].y, HashKey(j, 2 * u + 1));
    }
  }
  HashAddStrand(sum, index, sums);
}

// Tiles first, first + step, ... of a leaf.
template <bool kAligned>
__device__ Hash128 SumTiles(const std::uint8_t* leaf, std::uint64_t bytes, unsigned first,
                            unsigned step, unsigned c) {
  Hash128 sum;
  Strand strand;
  const unsigned whole = static_cast<unsigned>(bytes / kHashTileBytes);
  for (unsigned tile = first; tile < whole; tile += step) {
    LoadStrand<kAligned>(strand, leaf + std::uint64_t{tile} * kHashTileBytes, c);
    AddStrand(sum, std::uint64_t{tile} * kHashTileStrands + c, strand);
  }
  const std::uint64_t tail = bytes % kHashTileBytes;
  if (tail != 0 && whole % step == first) {
    LoadPartialStrand(strand, leaf + std::uint64_t{whole} * kHashTileBytes, tail, c);
    AddStrand(sum, std::uint64_t{whole} * kHashTileStrands + c, strand);
  }
  return sum;
}

__device__ std::uint64_t WarpSum(std::uint64_t value) {
  for (unsigned distance = kWarpThreads / 2; distance != 0; distance /= 2) {
    value += __shfl_down_sync(0xffffffffu, static_cast<unsigned long long>(value), distance);
  }
  return value;  // in lane 0
}

// The sum over all threads of the leaf's blocks, in thread 0 of the first of them.
__device__ Hash128 SumOverLeaf(Hash128 sum, unsigned blocks) {
  __shared__ Hash128 of_warp[kWarps];
  sum = {WarpSum(sum.lo), WarpSum(sum.hi)};
  if (threadIdx.x % kWarpThreads == 0) of_warp[threadIdx.x / kWarpThreads] = sum;
  __syncthreads();
  Hash128 total;
  if (threadIdx.x == 0) {
    for (unsigned warp = 0; warp < kWarps; ++warp) {
      total.lo += of_warp[warp].lo;
      total.hi += of_warp[warp].hi;
    }
    of_warp[0] = total;  // for the first block to fetch
  }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  cluster.sync();
  if (threadIdx.x == 0 && cluster.block_rank() == 0) {
    for (unsigned rank = 1; rank < blocks; ++rank) {
      const Hash128& other = *cluster.map_shared_rank(of_warp, rank);
      total.lo += other.lo;
      total.hi += other.hi;
    }
  }
  cluster.sync();  // a block's shared memory is there while others read it
#endif
  return total;
}

__global__ void __launch_bounds__(kHashBlockThreads) HOLDFAST_HASH_CLUSTER
    HashLeaves(HashLeavesParams params) {
  const std::uint64_t index = blockIdx.x / params.blocks_per_leaf;
  const unsigned part = blockIdx.x % params.blocks_per_leaf;
  const std::uint64_t begin = index * kHashLeafBytes;
  const std::uint64_t left = params.bytes - begin;
  const std::uint64_t bytes = left < kHashLeafBytes ? left : kHashLeafBytes;
  const std::uint8_t* const leaf = params.data + begin;

  const unsigned first = part * kWarps + threadIdx.x / kWarpThreads;
  const unsigned step = params.blocks_per_leaf * kWarps;
  const unsigned c = threadIdx.x % kWarpThreads;
  const bool aligned = reinterpret_cast<std::uint64_t>(leaf) % kHashUnitBytes == 0;
  const Hash128 mine = aligned ? SumTiles<true>(leaf, bytes, first, step, c)
                               : SumTiles<false>(leaf, bytes, first, step, c);
  const Hash128 total = SumOverLeaf(mine, params.blocks_per_leaf);
  if (threadIdx.x == 0 && part == 0) params.out[index] = HashFinish(total, bytes);
}

}  // namespace

const void* HashLeavesFunction() { return reinterpret_cast<const void*>(&HashLeaves); }

}  // namespace holdfast
