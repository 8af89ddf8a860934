#include "runtime/kernels/synthetic_cache.h"

#include <algorithm>

#include "runtime/kernels/launch.h"

namespace holdfast {
namespace {

void Blame(PatternFault* fault, std::uint64_t* digest, std::int64_t at, std::uint32_t seen,
           std::uint32_t wanted) {
  ++fault->differing;
  fault->first_from_end = std::max(fault->first_from_end, ~static_cast<std::uint64_t>(at));
  *digest += PatternBlame(seen, wanted);
}

void SyntheticCacheWriteHost(const SyntheticCacheWriteParams& p) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::int32_t position = p.positions[row];
    if (p.row_kv_length[row] == 0 || (position + 1) % p.cache.tokens_per_row != 0) continue;
    const std::int32_t j = position / p.cache.tokens_per_row;
    const std::int64_t at = SyntheticRowOffset(p.cache, p.row_sequence[row], j);
    if (at < 0) continue;
    auto* const words = reinterpret_cast<std::uint32_t*>(p.cache.pool + at);
    const auto token = static_cast<std::uint32_t>(p.tokens[row]);
    const auto place = static_cast<std::uint32_t>(position);
    const std::uint64_t key = SyntheticRowKey(p.cache.key, token, place);
    words[0] = token;
    words[1] = place;
    const std::int32_t count = SyntheticRowWords(p.cache, j);
    for (std::int32_t i = 2; i < count; ++i) words[i] = SyntheticWord(key, i);
  }
}

void SyntheticCacheReadHost(const SyntheticCacheReadParams& p) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    if (p.row_kv_length[row] == 0) continue;
    const std::int32_t end = p.row_kv_length[row] / p.cache.tokens_per_row;
    std::uint64_t sum = 0;
    for (std::int32_t j = p.cache.window > 0 ? std::max(0, end - p.cache.window) : 0; j < end;
         ++j) {
      const std::int64_t at = SyntheticRowOffset(p.cache, p.row_sequence[row], j);
      if (at < 0) continue;
      const auto* const words = reinterpret_cast<const std::uint32_t*>(p.cache.pool + at);
      const auto place = static_cast<std::uint32_t>((j + 1) * p.cache.tokens_per_row - 1);
      if (words[1] != place) Blame(p.fault, p.digest, at + 4, words[1], place);
      const std::uint64_t key = SyntheticRowKey(p.cache.key, words[0], words[1]);
      const std::int32_t count = SyntheticRowWords(p.cache, j);
      for (std::int32_t i = 2; i < count; ++i) {
        const std::uint32_t wanted = SyntheticWord(key, i);
        if (words[i] != wanted) Blame(p.fault, p.digest, at + 4 * i, words[i], wanted);
      }
      sum += HashMix(key);
    }
    p.hidden[row] = HashMix(p.hidden[row] + sum);
  }
}

// The sequence's rows of this step: [first, end). Empty: first >= end.
struct RowRange {
  std::int32_t first, end;
};
RowRange RowsOf(const SyntheticStateParams& p, std::int32_t sequence) {
  RowRange range{p.rows, 0};
  for (std::int32_t row = 0; row < p.rows; ++row) {
    if (p.row_kv_length[row] == 0 || p.row_sequence[row] != sequence) continue;
    range.first = std::min(range.first, row);
    range.end = row + 1;
  }
  return range;
}

std::uint64_t StateHash(const std::uint32_t* words) {
  return words[1] | static_cast<std::uint64_t>(words[2]) << 32;
}

void SyntheticStateHost(const SyntheticStateParams& p) {
  for (std::int32_t sequence = 0; sequence < p.sequences; ++sequence) {
    const RowRange rows = RowsOf(p, sequence);
    const std::int64_t block =
        p.block_table[std::int64_t{sequence} * p.table_stride + p.table_first];
    if (rows.first >= rows.end || block == 0) continue;
    const std::int64_t at = block * p.block_bytes + p.layer_offset;
    auto* const words = reinterpret_cast<std::uint32_t*>(p.pool + at);
    const std::int32_t count = p.state_bytes / 4;
    std::uint64_t hash = p.key;
    const auto taken = static_cast<std::uint32_t>(p.positions[rows.first]);
    if (taken > 0) {
      hash = StateHash(words);
      if (words[0] != taken) Blame(p.fault, p.digest, at, words[0], taken);
      if (words[3] != 0) Blame(p.fault, p.digest, at + 12, words[3], 0);
      const std::uint64_t key = HashMix(p.key ^ hash);
      for (std::int32_t i = kSyntheticStateHeader; i < count; ++i) {
        const std::uint32_t wanted = SyntheticWord(key, i);
        if (words[i] != wanted) Blame(p.fault, p.digest, at + 4 * i, words[i], wanted);
      }
    }
    for (std::int32_t row = rows.first; row < rows.end; ++row) {
      hash = HashMix(hash ^ static_cast<std::uint32_t>(p.tokens[row]));
      p.hidden[row] = HashMix(p.hidden[row] + hash + p.key);
    }
    words[0] = taken + static_cast<std::uint32_t>(rows.end - rows.first);
    words[1] = static_cast<std::uint32_t>(hash);
    words[2] = static_cast<std::uint32_t>(hash >> 32);
    words[3] = 0;
    const std::uint64_t key = HashMix(p.key ^ hash);
    for (std::int32_t i = kSyntheticStateHeader; i < count; ++i) words[i] = SyntheticWord(key, i);
  }
}

}  // namespace

const Op& SyntheticCacheWriteOp() {
  static const Op op = MakeOp<SyntheticCacheWriteParams, SyntheticCacheWriteHost>(
      "synthetic_cache_write", HOLDFAST_CUDA_TWIN(SyntheticCacheWriteCuda));
  return op;
}

const Op& SyntheticCacheReadOp() {
  static const Op op = MakeOp<SyntheticCacheReadParams, SyntheticCacheReadHost>(
      "synthetic_cache_read", HOLDFAST_CUDA_TWIN(SyntheticCacheReadCuda));
  return op;
}

const Op& SyntheticStateOp() {
  static const Op op = MakeOp<SyntheticStateParams, SyntheticStateHost>(
      "synthetic_state", HOLDFAST_CUDA_TWIN(SyntheticStateCuda));
  return op;
}

LaunchShape SyntheticCacheShape(std::int64_t rows) {
  return BlockPerRow(static_cast<std::int32_t>(rows));
}

LaunchShape SyntheticStateShape(const SyntheticStateParams& p) { return BlockPerRow(p.sequences); }

}  // namespace holdfast
