// The sparse indexer's scratch: keys gathered for prefill, top-k selection, and decode logits.
// Source: vLLM's indexer; DeepSeek-V3.2 keeps 128 fp8 elements and an f32 scale a key.
#ifndef HOLDFAST_ATTENTION_SIZING_SPARSE_INDEXER_H_
#define HOLDFAST_ATTENTION_SIZING_SPARSE_INDEXER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/sizing/rule.h"

namespace holdfast {

struct SparseIndexerKeys {
  std::int64_t max_model_len = 0, prefill_factor = 5, head_dim = 128, fp4 = 0;
  std::int64_t decode_rows = 0, pool = 1;
};
absl::StatusOr<std::vector<DeclaredRequest>> SparseIndexerRequests(const SparseIndexerKeys& keys);
SizingRule SparseIndexerRule();

// Bytes of one key: elements and scales, by head size.
std::int64_t IndexerKeyBytes(std::int64_t head_dim, bool fp4);

// Query rows whose f32 logits over `keys` keys fit the budget; at least one. Longer groups are cut.
std::int64_t IndexerLogitRows(std::int64_t budget_bytes, std::int64_t keys);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_SPARSE_INDEXER_H_
