#include "runtime/kernels/atomics.cuh"
#include "runtime/kernels/launch.h"
#include "runtime/kernels/synthetic_cache.h"

namespace holdfast {
namespace {

__global__ void __launch_bounds__(kRowThreads)
    CacheWriteKernel(const __grid_constant__ SyntheticCacheWriteParams p) {
  const std::int64_t row = blockIdx.x;
  const std::int32_t position = p.positions[row];
  if (p.row_kv_length[row] == 0 || (position + 1) % p.cache.tokens_per_row != 0) return;
  const std::int32_t j = position / p.cache.tokens_per_row;
  const std::int64_t at = SyntheticRowOffset(p.cache, p.row_sequence[row], j);
  if (at < 0) return;
  std::uint32_t* const words = reinterpret_cast<std::uint32_t*>(p.cache.pool + at);
  const std::uint32_t token = static_cast<std::uint32_t>(p.tokens[row]);
  const std::uint32_t place = static_cast<std::uint32_t>(position);
  const std::uint64_t key = SyntheticRowKey(p.cache.key, token, place);
  const std::int32_t count = SyntheticRowWords(p.cache, j);
  for (std::int32_t i = threadIdx.x; i < count; i += kRowThreads) {
    words[i] = i == 0 ? token : i == 1 ? place : SyntheticWord(key, i);
  }
}

__global__ void __launch_bounds__(kRowThreads)
    CacheReadKernel(const __grid_constant__ SyntheticCacheReadParams p) {
  const std::int64_t row = blockIdx.x;
  if (p.row_kv_length[row] == 0) return;
  const std::int32_t end = p.row_kv_length[row] / p.cache.tokens_per_row;
  std::int32_t j = p.cache.window > 0 && end > p.cache.window ? end - p.cache.window : 0;
  std::uint64_t sum = 0;  // every thread has the same
  for (; j < end; ++j) {
    const std::int64_t at = SyntheticRowOffset(p.cache, p.row_sequence[row], j);
    if (at < 0) continue;
    const std::uint32_t* const words = reinterpret_cast<const std::uint32_t*>(p.cache.pool + at);
    const std::uint32_t token = words[0], seen_place = words[1];
    const std::uint64_t key = SyntheticRowKey(p.cache.key, token, seen_place);
    const std::uint32_t place = static_cast<std::uint32_t>((j + 1) * p.cache.tokens_per_row - 1);
    const std::int32_t count = SyntheticRowWords(p.cache, j);
    for (std::int32_t i = threadIdx.x + 1; i < count; i += kRowThreads) {
      const std::uint32_t wanted = i == 1 ? place : SyntheticWord(key, i);
      const std::uint32_t seen = words[i];
      if (seen != wanted) {
        Blame(p.fault, p.digest, static_cast<std::uint64_t>(at + 4 * i), seen, wanted);
      }
    }
    sum += HashMix(key);
  }
  if (threadIdx.x == 0) p.hidden[row] = HashMix(p.hidden[row] + sum);
}

// One block a sequence.
__global__ void __launch_bounds__(kRowThreads)
    StateKernel(const __grid_constant__ SyntheticStateParams p) {
  __shared__ std::int32_t first, end;
  __shared__ unsigned long long hash_after;
  const std::int32_t sequence = static_cast<std::int32_t>(blockIdx.x);
  if (threadIdx.x == 0) {
    first = p.rows;
    end = 0;
  }
  __syncthreads();
  for (std::int32_t row = threadIdx.x; row < p.rows; row += kRowThreads) {
    if (p.row_kv_length[row] == 0 || p.row_sequence[row] != sequence) continue;
    atomicMin(&first, row);
    atomicMax(&end, row + 1);
  }
  __syncthreads();
  const std::int64_t block =
      p.block_table[static_cast<std::int64_t>(sequence) * p.table_stride + p.table_first];
  if (first >= end || block == 0) return;  // one value a block
  const std::int64_t at = block * p.block_bytes + p.layer_offset;
  std::uint32_t* const words = reinterpret_cast<std::uint32_t*>(p.pool + at);
  const std::int32_t count = p.state_bytes / 4;
  const std::uint32_t taken = static_cast<std::uint32_t>(p.positions[first]);
  std::uint64_t hash = p.key;
  if (taken > 0) {
    hash = words[1] | static_cast<std::uint64_t>(words[2]) << 32;
    const std::uint64_t key = HashMix(p.key ^ hash);
    for (std::int32_t i = threadIdx.x; i < count; i += kRowThreads) {
      if (i == 1 || i == 2) continue;
      const std::uint32_t wanted = i == 0 ? taken : i == 3 ? 0 : SyntheticWord(key, i);
      const std::uint32_t seen = words[i];
      if (seen != wanted) {
        Blame(p.fault, p.digest, static_cast<std::uint64_t>(at + 4 * i), seen, wanted);
      }
    }
  }
  __syncthreads();  // all have read what is now replaced
  if (threadIdx.x == 0) {
    for (std::int32_t row = first; row < end; ++row) {
      hash = HashMix(hash ^ static_cast<std::uint32_t>(p.tokens[row]));
      p.hidden[row] = HashMix(p.hidden[row] + hash + p.key);
    }
    hash_after = hash;
  }
  __syncthreads();
  hash = hash_after;
  const std::uint64_t key = HashMix(p.key ^ hash);
  for (std::int32_t i = threadIdx.x; i < count; i += kRowThreads) {
    std::uint32_t word = SyntheticWord(key, i);
    if (i == 0) word = taken + static_cast<std::uint32_t>(end - first);
    if (i == 1) word = static_cast<std::uint32_t>(hash);
    if (i == 2) word = static_cast<std::uint32_t>(hash >> 32);
    if (i == 3) word = 0;
    words[i] = word;
  }
}

}  // namespace

const void* SyntheticCacheWriteCuda() { return reinterpret_cast<const void*>(&CacheWriteKernel); }
const void* SyntheticCacheReadCuda() { return reinterpret_cast<const void*>(&CacheReadKernel); }
const void* SyntheticStateCuda() { return reinterpret_cast<const void*>(&StateKernel); }

}  // namespace holdfast
