// What an engine that runs FlashInfer's MLA kernels on the arena declares for them.
#ifndef HOLDFAST_ATTENTION_DECLARE_FLASHINFER_H_
#define HOLDFAST_ATTENTION_DECLARE_FLASHINFER_H_

#include "absl/status/statusor.h"
#include "attention/declaration.h"

namespace holdfast {

// Dense decode writes the log-sum-exp, and so needs twice the scratch, where other ranks hold part
// of a sequence.
inline constexpr AttentionPath kFlashInferLocal("local", [](const AttentionConfig& config) {
  return config.decode_ranks == 1;
});
inline constexpr AttentionPath kFlashInferShared("shared_context",
                                                 [](const AttentionConfig& config) {
                                                   return config.decode_ranks > 1;
                                                 });

absl::StatusOr<AttentionDeclaration> DeclareFlashInferMla(const AttentionConfig& config);
absl::StatusOr<AttentionDeclaration> DeclareFlashInferSparseMla(const AttentionConfig& config);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_DECLARE_FLASHINFER_H_
