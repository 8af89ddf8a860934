// What a synthetic layer does with its cache: a row a token written and read back (caches of all
// tokens, of a window, of compressed tokens), or one state a sequence carried on.
//
// A row holds its token and position and, behind them, words that follow from those and the layer.
// So a reader can tell a byte that somebody changed (blamed) from a row that is sound but another
// one's (a position it does not expect: blamed; another token: other logits).
#ifndef HOLDFAST_RUNTIME_KERNELS_SYNTHETIC_CACHE_H_
#define HOLDFAST_RUNTIME_KERNELS_SYNTHETIC_CACHE_H_

#include <cstdint>

#include "device/hash.h"
#include "device/op.h"
#include "runtime/kernels/pattern.h"

namespace holdfast {

// Where one cache of a layer lies in the pool. All offsets are multiples of 4.
struct SyntheticCacheLayout {
  char* pool;                       // blocks of block_bytes; block 0 is the null page
  const std::int32_t* block_table;  // (sequences, table_stride)
  std::int64_t block_bytes, layer_offset;
  std::uint64_t key;
  std::int32_t table_stride;
  std::int32_t table_first, table_entries;  // its part of a row; goes round
  std::int32_t rows_per_page;
  std::int32_t tokens_per_row;  // row j is written with token (j + 1) * tokens_per_row - 1
  std::int32_t window;          // rows a token reads, its own among them; 0: all
  std::int32_t row_bytes;       // at least 8
  std::int32_t tail_bytes;      // left of the page: the last row's
};

// Offset of row j of a sequence from the pool's base; -1 in the null page, which is nobody's.
HOLDFAST_HOST_DEVICE inline std::int64_t SyntheticRowOffset(const SyntheticCacheLayout& c,
                                                            std::int64_t sequence,
                                                            std::int32_t j) {
  const std::int32_t entry = c.table_first + j / c.rows_per_page % c.table_entries;
  const std::int64_t block = c.block_table[sequence * c.table_stride + entry];
  if (block == 0) return -1;
  return block * c.block_bytes + c.layer_offset +
         static_cast<std::int64_t>(j % c.rows_per_page) * c.row_bytes;
}
HOLDFAST_HOST_DEVICE inline std::int32_t SyntheticRowWords(const SyntheticCacheLayout& c,
                                                           std::int32_t j) {
  const bool last = j % c.rows_per_page == c.rows_per_page - 1;
  return (c.row_bytes + (last ? c.tail_bytes : 0)) / 4;
}
HOLDFAST_HOST_DEVICE inline std::uint64_t SyntheticRowKey(std::uint64_t key, std::uint32_t token,
                                                          std::uint32_t position) {
  return HashMix(key ^ HashMix((static_cast<std::uint64_t>(token) << 32) | position));
}
// Word i of a row or state; the first ones are its header.
HOLDFAST_HOST_DEVICE inline std::uint32_t SyntheticWord(std::uint64_t row_key, std::int32_t i) {
  return static_cast<std::uint32_t>(
      PatternWord(row_key, static_cast<std::uint64_t>(i)) >> 32);
}

// Rows with row_kv_length 0 are pads.
struct SyntheticCacheWriteParams {
  SyntheticCacheLayout cache;
  const std::int32_t* tokens;         // (rows)
  const std::int32_t* positions;      // (rows)
  const std::int32_t* row_sequence;   // (rows)
  const std::int32_t* row_kv_length;  // (rows)
  std::int64_t rows;
};
const Op& SyntheticCacheWriteOp();

// hidden[r] = HashMix(hidden[r] + sum of HashMix(header of j, key)) over the rows j it reads.
struct SyntheticCacheReadParams {
  SyntheticCacheLayout cache;
  const std::int32_t* row_sequence;   // (rows)
  const std::int32_t* row_kv_length;  // (rows)
  std::uint64_t* hidden;              // (rows)
  std::uint64_t* digest;
  PatternFault* fault;  // offsets are those from the pool's base
  std::int64_t rows;
};
const Op& SyntheticCacheReadOp();
LaunchShape SyntheticCacheShape(std::int64_t rows);

// One state of `state_bytes` a sequence (at least 16): the words {count, hash low, hash high, 0} of
// the `count` tokens it has taken up, and a pattern of them. Takes up the sequence's rows of this
// step in order: hash = HashMix(hash ^ token), hidden[r] = HashMix(hidden[r] + hash + key).
struct SyntheticStateParams {
  char* pool;
  const std::int32_t* block_table;    // (sequences, table_stride)
  const std::int32_t* tokens;         // (rows)
  const std::int32_t* positions;      // (rows)
  const std::int32_t* row_sequence;   // (rows); rows of a sequence lie side by side
  const std::int32_t* row_kv_length;  // (rows)
  std::uint64_t* hidden;              // (rows)
  std::uint64_t* digest;
  PatternFault* fault;
  std::int64_t block_bytes, layer_offset;
  std::uint64_t key;
  std::int32_t table_stride, table_first;
  std::int32_t rows, sequences;
  std::int32_t state_bytes;
};
const Op& SyntheticStateOp();
LaunchShape SyntheticStateShape(const SyntheticStateParams& params);

inline constexpr std::int32_t kSyntheticStateHeader = 4;  // words

// The CUDA twins: addresses of __global__ functions.
const void* SyntheticCacheWriteCuda();
const void* SyntheticCacheReadCuda();
const void* SyntheticStateCuda();

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_SYNTHETIC_CACHE_H_
