#include "attention/declare/mla_sparse.h"

#include "attention/check_field.h"
#include "attention/declare/config_check.h"
#include "attention/sizing/requests.h"
#include "attention/sizing/sparse_indexer.h"
#include "device/error.h"

namespace holdfast {
namespace {

// Everything but the scratch.
absl::StatusOr<AttentionDeclaration> DeclareSparse(const std::string& backend,
                                                   const AttentionConfig& config) {
  AttentionDeclaration d{
      .backend = backend, .profiling = ProfilingSupport::kRequired, .gives_lse = true};
  HOLDFAST_RETURN_IF_ERROR(CheckConfig(backend, config));
  HOLDFAST_ASSIGN_OR_RETURN(const AttentionPath path,
                            ChoosePath(backend, {kSparseMixedBatch, kSparseBf16Prefill}, config));
  d.path = path.name();
  HOLDFAST_ASSIGN_OR_RETURN(d.kv, LatentPages(backend, config));
  return d;
}

}  // namespace

absl::StatusOr<AttentionDeclaration> DeclareMlaSparse(const AttentionConfig& config) {
  HOLDFAST_ASSIGN_OR_RETURN(AttentionDeclaration d, DeclareSparse("mla_sparse", config));
  HOLDFAST_ASSIGN_OR_RETURN(
      d.scratch, RequestList().Add(SplitScratch(config)).Add(SparsePrefillContext(config)).Take());
  return d;
}

absl::StatusOr<AttentionDeclaration> DeclareFlashMlaSparse(const AttentionConfig& config) {
  HOLDFAST_ASSIGN_OR_RETURN(AttentionDeclaration d, DeclareSparse("flashmla_sparse", config));
  HOLDFAST_ASSIGN_OR_RETURN(
      d.scratch, FlashMlaSparseRequests({.heads = config.heads,
                                         .max_num_batched_tokens = config.max_batched_tokens,
                                         .max_model_len = config.max_model_len,
                                         .quantized = config.quantized,
                                         .hisparse = config.hisparse,
                                         .pcp = config.prefill_ranks,
                                         .dcp = config.decode_ranks,
                                         .prefill_factor = config.prefill_factor,
                                         .path_gating = config.path_gating,
                                         .arch = static_cast<std::int64_t>(config.arch)}));
  return d;
}

absl::StatusOr<AttentionDeclaration> DeclareSparseIndexer(const AttentionConfig& config) {
  constexpr std::int64_t kHeadDim = 128;
  AttentionDeclaration d{.backend = "sparse_indexer",
                         .path = kIndexerLogits.name(),
                         .profiling = ProfilingSupport::kNeutral};
  HOLDFAST_RETURN_IF_ERROR(CheckConfig(d.backend, config));
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::uint64_t rows,
      Product("decode rows", {config.max_sequences, config.draft_tokens + 1}));
  HOLDFAST_RETURN_IF_ERROR(CheckField(d.backend, "max_sequences * (draft_tokens + 1)",
                                      static_cast<std::int64_t>(rows), 1, kMostCount));
  // Prefill takes its rows through the decode step's logits, as many at a time.
  HOLDFAST_ASSIGN_OR_RETURN(
      d.scratch, SparseIndexerRequests({.max_model_len = config.max_model_len,
                                        .prefill_factor = config.prefill_factor,
                                        .head_dim = kHeadDim,
                                        .decode_rows = static_cast<std::int64_t>(rows)}));
  d.kv = {.kind = KvKind::kFull,
          .layout = "indexer_fp8",
          .page_tokens = config.page_tokens,
          .page_bytes =
              static_cast<std::uint64_t>(config.page_tokens * IndexerKeyBytes(kHeadDim, false)),
          .context_ranks = config.prefill_ranks * config.decode_ranks};
  return d;
}

}  // namespace holdfast
