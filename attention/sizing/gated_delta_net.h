// Gated delta-net layers: what graphs read of a batch, and the chunked prefill's scratch.
// Source: vLLM's GDN backend; flash-linear-attention's chunked form (chunks of 64 tokens, WY form).
#ifndef HOLDFAST_ATTENTION_SIZING_GATED_DELTA_NET_H_
#define HOLDFAST_ATTENTION_SIZING_GATED_DELTA_NET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/sizing/rule.h"

namespace holdfast {

// Read by captured graphs: at fixed addresses, and kept.
struct GatedDeltaNetKeys {
  std::int64_t max_num_seqs = 0, num_speculative_tokens = 0, max_capture_size = 512;
};
absl::StatusOr<std::vector<DeclaredRequest>> GatedDeltaNetRequests(const GatedDeltaNetKeys& keys);
SizingRule GatedDeltaNetRule();

// Scratch of a prefill of `tokens` rows with `value_heads` heads of `head_dim` elements.
absl::StatusOr<std::vector<DeclaredRequest>> GatedDeltaNetPrefill(std::int64_t tokens,
                                                                  std::int64_t value_heads,
                                                                  std::int64_t head_dim);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_GATED_DELTA_NET_H_
