// Gated delta-net layers: a state of fixed size instead of a cache that grows.
#ifndef HOLDFAST_ATTENTION_DECLARE_GATED_DELTA_NET_H_
#define HOLDFAST_ATTENTION_DECLARE_GATED_DELTA_NET_H_

#include "absl/status/statusor.h"
#include "attention/declaration.h"

namespace holdfast {

// Decode updates states in place and takes no scratch; prefill goes by chunks and sizes it.
inline constexpr AttentionPath kChunkedDelta("chunked_delta",
                                             [](const AttentionConfig&) { return true; });

// heads: value heads, a multiple of key_heads; latent: elements of a head.
absl::StatusOr<AttentionDeclaration> DeclareGatedDeltaNet(const AttentionConfig& config);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_DECLARE_GATED_DELTA_NET_H_
