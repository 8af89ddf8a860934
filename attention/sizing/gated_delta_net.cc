#include "attention/sizing/gated_delta_net.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "gated_delta_net";
constexpr std::int64_t kChunkTokens = 64;

const KeyTable<GatedDeltaNetKeys>& Table() {
  using K = GatedDeltaNetKeys;
  static const KeyTable<K> table = {
      Required("max_num_seqs", &K::max_num_seqs, 1, kMostCount, "sequences decoded together (S)"),
      Count("num_speculative_tokens", &K::num_speculative_tokens, 0, 4096, "draft tokens (K)"),
      Count("max_capture_size", &K::max_capture_size, 1, 1 << 20, "rows of the largest graph"),
  };
  return table;
}

}  // namespace

absl::StatusOr<std::vector<DeclaredRequest>> GatedDeltaNetRequests(const GatedDeltaNetKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  const std::int64_t states = keys.num_speculative_tokens + 1;
  // Both factors are far below 2^63's root once the sequences are cut to the largest graph.
  const std::int64_t batch =
      std::min(std::min(keys.max_num_seqs, keys.max_capture_size) * states, keys.max_capture_size);
  return RequestList()
      .Add("spec_state_indices", {batch, states, kI32Bytes},
           absl::StrFormat("(%d, %d) i32: state of each draft token", batch, states))
      .Add("state_indices", {batch, kI32Bytes}, absl::StrFormat("(%d) i32", batch))
      .Add("spec_token_indices", {batch * states, kI32Bytes},
           absl::StrFormat("(%d) i32", batch * states))
      .Add("plain_token_indices", {batch * states, kI32Bytes},
           absl::StrFormat("(%d) i32", batch * states))
      .Add("spec_query_start", {batch + 1, kI32Bytes}, absl::StrFormat("(%d) i32", batch + 1))
      .Add("plain_query_start", {batch + 1, kI32Bytes}, absl::StrFormat("(%d) i32", batch + 1))
      .Add("accepted_tokens", {batch, kI32Bytes}, absl::StrFormat("(%d) i32", batch))
      .Add("spec_mask", {batch}, absl::StrFormat("(%d) bool", batch))
      .Take();
}

absl::StatusOr<std::vector<DeclaredRequest>> GatedDeltaNetPrefill(std::int64_t tokens,
                                                                  std::int64_t value_heads,
                                                                  std::int64_t head_dim) {
  const std::int64_t chunks = CeilDiv(tokens, kChunkTokens);
  const auto rows = [&](std::int64_t width, const char* what) {
    return absl::StrFormat("(%d, %d, %d) bf16: %s", tokens, value_heads, width, what);
  };
  return RequestList()
      .Add("chunk_inverse", {tokens, value_heads, kChunkTokens, kBF16Bytes},
           rows(kChunkTokens, "inverse of each chunk's triangle"))
      .Add("w", {tokens, value_heads, head_dim, kBF16Bytes}, rows(head_dim, "keys, transformed"))
      .Add("u", {tokens, value_heads, head_dim, kBF16Bytes}, rows(head_dim, "values, transformed"))
      .Add("v_new", {tokens, value_heads, head_dim, kBF16Bytes},
           rows(head_dim, "values without what the state knows"))
      .Add("chunk_states", {chunks, value_heads, head_dim, head_dim, kBF16Bytes},
           absl::StrFormat("(%d, %d, %d, %d) bf16: state before each chunk", chunks, value_heads,
                           head_dim, head_dim))
      .Add("decay", {tokens, value_heads, kF32Bytes},
           absl::StrFormat("(%d, %d) f32: summed within a chunk", tokens, value_heads))
      .Take();
}

SizingRule GatedDeltaNetRule() {
  return MakeRequestRule(
      {.name = kName,
       .doc = "gated delta-net: buffers that captured graphs read",
       .formula =
           "B = min(S * (K + 1), max_capture_size); i32 (B, K + 1), (B), 2 x (B * (K + 1)),\n"
           "2 x (B + 1), (B); bool (B)."},
      Table(), &GatedDeltaNetRequests);
}

}  // namespace holdfast
