// Sparse multi-head latent attention: rows read top-k keys. Two backends declare over one pair of
// predicates: ours, which takes any number of heads as they are, and FlashMLA, which pads them.
#ifndef HOLDFAST_ATTENTION_DECLARE_MLA_SPARSE_H_
#define HOLDFAST_ATTENTION_DECLARE_MLA_SPARSE_H_

#include "absl/status/statusor.h"
#include "attention/declaration.h"
#include "attention/sizing/flashmla_sparse.h"

namespace holdfast {

// Paths kSparseMixedBatch and kSparseBf16Prefill of flashmla_sparse.h.
absl::StatusOr<AttentionDeclaration> DeclareMlaSparse(const AttentionConfig& config);
absl::StatusOr<AttentionDeclaration> DeclareFlashMlaSparse(const AttentionConfig& config);

// The indexer that chooses the keys: logits and top-k, over a cache of its own.
inline constexpr AttentionPath kIndexerLogits("logits",
                                              [](const AttentionConfig&) { return true; });
absl::StatusOr<AttentionDeclaration> DeclareSparseIndexer(const AttentionConfig& config);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_DECLARE_MLA_SPARSE_H_
