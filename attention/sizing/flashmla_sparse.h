// FlashMLA's sparse attention: query and output staging, and the bf16 copy of a prefill's context.
// Source: the reservation of vLLM's backend (flashmla_sparse.py) with its later staging buffers.
#ifndef HOLDFAST_ATTENTION_SIZING_FLASHMLA_SPARSE_H_
#define HOLDFAST_ATTENTION_SIZING_FLASHMLA_SPARSE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/attention_path.h"
#include "attention/sizing/rule.h"

namespace holdfast {

// Fewer heads than this run prefill and decode as one batch through the fp8 decode kernel: padding
// them for the bf16 prefill kernel would cost more than it brings.
inline constexpr std::int64_t kLeastHeadsForBf16Prefill = 32;

// The two paths over an fp8 cache; the second is the only one over a bf16 cache. Only it reads the
// bf16 context. (PCP and DCP together gather the context of other ranks first, hisparse fetches it:
// neither can mix.)
struct FlashMlaSparsePath {
  static bool SelectsMixedBatch(const AttentionConfig& config) {
    return config.quantized && config.heads < kLeastHeadsForBf16Prefill && !config.hisparse &&
           !(config.prefill_ranks > 1 && config.decode_ranks > 1);
  }
  static bool SelectsBf16Prefill(const AttentionConfig& config) {
    return !SelectsMixedBatch(config);
  }
};
inline constexpr AttentionPath kSparseMixedBatch("fp8_mixed_batch",
                                                 &FlashMlaSparsePath::SelectsMixedBatch);
inline constexpr AttentionPath kSparseBf16Prefill("bf16_prefill",
                                                  &FlashMlaSparsePath::SelectsBf16Prefill);

struct FlashMlaSparseKeys {
  std::int64_t heads = 0, max_num_batched_tokens = 0, max_model_len = 0;
  std::int64_t quantized = 1, hisparse = 0, pcp = 1, dcp = 1, prefill_factor = 5;
  std::int64_t path_gating = 1;
  std::int64_t arch = 0;  // GpuArch
  std::int64_t staging = 1;
};
// T = max_num_batched_tokens, H = heads, C = prefill_factor * max_model_len rows of context.
absl::StatusOr<std::vector<DeclaredRequest>> FlashMlaSparseRequests(const FlashMlaSparseKeys& keys);
SizingRule FlashMlaSparseRule();

// The context buffers alone, as our own sparse backend has them too: (C, 576) bf16 if the cache is
// quantised, a W-th of it if other ranks hold the rest, and (C, 576) bf16 gathered from them.
absl::StatusOr<std::vector<DeclaredRequest>> SparsePrefillContext(const AttentionConfig& config);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_FLASHMLA_SPARSE_H_
