// Bytes of a cache page by layout, and pages of a sequence.
// Source: vLLM's cache specifications; FlashMLA's fp8 layouts.
#ifndef HOLDFAST_ATTENTION_SIZING_KV_PAGES_H_
#define HOLDFAST_ATTENTION_SIZING_KV_PAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/kv_page_spec.h"
#include "attention/sizing/rule.h"

namespace holdfast {

// A quantised latent cache. In most, a page is all data rows, then all scale rows; fp8_ds_mla keeps
// a token's data and scales together, which takes the same bytes.
struct KvLayout {
  const char* name;
  std::int64_t data_bytes;     // of a token: its elements
  std::int64_t scale_bytes;    // of a token: their scales, with padding
  std::int64_t page_multiple;  // a page is rounded up to this
  const char* parts;           // what the token's bytes are
};
// fp8_ds_mla (656 B), deepseek_v4 (584 B), deepseek_v41 (528 B), nvfp4_ds_mla (352 B).
const std::vector<KvLayout>& QuantizedKvLayouts();

struct Fp8KvPageKeys {
  std::int64_t layout = 0;  // index into QuantizedKvLayouts()
  std::int64_t block_size = 64, layers = 1;
};
absl::StatusOr<std::vector<DeclaredRequest>> Fp8KvPageRequests(const Fp8KvPageKeys& keys);
SizingRule Fp8KvPageRule();

// An unquantised page, or one with an f32 scale for each token and head of keys and of values. A
// latent cache has one head, and its values are its keys: value_dim 0.
struct KvPageKeys {
  std::int64_t block_size = 64, kv_heads = 1, key_dim = 576, value_dim = 0, element_bytes = 2;
  std::int64_t head_scales = 0;
};
absl::StatusOr<std::vector<DeclaredRequest>> KvPageRequests(const KvPageKeys& keys);
SizingRule KvPageRule();

// The state of a gated delta-net layer for one sequence: (value_heads, D, D) of `state_bytes` each,
// and the last conv_width - 1 inputs of the short convolution over queries, keys and values, bf16.
struct KvStateKeys {
  std::int64_t key_heads = 0, value_heads = 0, head_dim = 128, conv_width = 4, state_bytes = 4;
};
absl::StatusOr<std::vector<DeclaredRequest>> KvStateRequests(const KvStateKeys& keys);
SizingRule KvStateRule();

// What a run asks of the cache for one sequence.
struct SequenceLimits {
  std::int64_t tokens = 0;              // its length, draft tokens not among them
  std::int64_t max_batched_tokens = 0;  // of one pass
  std::int64_t draft_tokens = 0;        // the last step holds them all before they are judged
  bool aligned_states = false;          // states are also kept at page boundaries
};
// Pages one layer needs for such a sequence:
//   full    ceil(ceil((tokens + draft) / ranks) / page_tokens)
//   window  ceil(min(window - 1 + max_batched_tokens, tokens + draft) / page_tokens) + 1, the last
//           because the window starts anywhere in its first page
//   state   1 + draft, aligned 2 + draft
std::int64_t PagesOfSequence(const KvPageSpec& spec, const SequenceLimits& limits);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_KV_PAGES_H_
