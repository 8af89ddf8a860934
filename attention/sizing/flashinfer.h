// FlashInfer's scratch, by path. Source: vLLM's FlashInfer backends and FlashInfer's own planners.
#ifndef HOLDFAST_ATTENTION_SIZING_FLASHINFER_H_
#define HOLDFAST_ATTENTION_SIZING_FLASHINFER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/sizing/rule.h"
#include "device/bytes.h"

namespace holdfast {

inline constexpr std::int64_t kFlashInferGenericBytes = 394 * static_cast<std::int64_t>(kMiB);

// Dense MLA decode: 128 MiB, twice that where the log-sum-exp is wanted, as under DCP.
struct FlashInferMlaKeys {
  std::int64_t dcp = 1, lse = 0;
};
absl::StatusOr<std::vector<DeclaredRequest>> FlashInferMlaRequests(const FlashInferMlaKeys& keys);
SizingRule FlashInferMlaRule();

// Sparse MLA through the generated kernels: the generic buffer and, under DCP, a slab of partial
// results that grows with tokens.
struct FlashInferSparseMlaKeys {
  std::int64_t heads = 0, max_num_batched_tokens = 0, dcp = 1;
  std::int64_t base_bytes = kFlashInferGenericBytes;
};
absl::StatusOr<std::vector<DeclaredRequest>> FlashInferSparseMlaRequests(
    const FlashInferSparseMlaKeys& keys);
SizingRule FlashInferSparseMlaRule();

// Staging of an nvfp4 cache for kernels that read fp8 rows.
struct FlashInferNvfp4Keys {
  std::int64_t max_model_len = 0, prefill_factor = 5;
  std::int64_t max_num_batched_tokens = 0, max_num_seqs = 0, num_speculative_tokens = 0,
               topk = 2048, native = 0;
};
absl::StatusOr<std::vector<DeclaredRequest>> FlashInferNvfp4Requests(
    const FlashInferNvfp4Keys& keys);
SizingRule FlashInferNvfp4Rule();

// Grouped-query prefill and tensor-core decode: partial outputs of every tile that may be split.
struct FlashInferGqaKeys {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 128, sms = 132, tile_rows = 16, tiles = 1;
};
absl::StatusOr<std::vector<DeclaredRequest>> FlashInferGqaRequests(const FlashInferGqaKeys& keys);
SizingRule FlashInferGqaRule();

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_FLASHINFER_H_
