// Scratch of attention whose keys are split among the multiprocessors.
//
// P parts make at most P - 1 cuts; each cut lies in one request, and a request cut c times makes
// c + 1 pieces. So pieces that need scratch are at most (P - 1) + min(batch, P - 1) <= 2 (P - 1),
// whatever the batch. FlashMLA instead keeps a slot for every request and part: batch + P.
#ifndef HOLDFAST_ATTENTION_SIZING_SPLIT_KV_H_
#define HOLDFAST_ATTENTION_SIZING_SPLIT_KV_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/sizing/rule.h"

namespace holdfast {

inline constexpr std::int64_t kSplitTileRows = 64;  // rows (query tokens * heads) of a tile

enum SplitKvScheme : std::int64_t { kSplitBounded, kSplitFlashMla };

struct SplitKvKeys {
  std::int64_t heads = 0, query_len = 1, max_num_seqs = 0, sms = 132, width = 512;
  std::int64_t scheme = kSplitBounded, pad_rows = 1, plan = 0;
};
absl::StatusOr<std::vector<DeclaredRequest>> SplitKvRequests(const SplitKvKeys& keys);
SizingRule SplitKvRule();

// Parts of a step whose requests have `rows` rows each: max(sms / ceil(rows / 64), 1).
std::int64_t SplitParts(std::int64_t rows, std::int64_t sms);

// Scratch for every batch and every query length from 1 to `query_len`: the most of SplitKvRequests
// over them.
absl::StatusOr<std::vector<DeclaredRequest>> SplitKvWorstCase(std::int64_t heads,
                                                              std::int64_t query_len,
                                                              std::int64_t sms, std::int64_t width);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_SPLIT_KV_H_
