#include "attention/declare/flashinfer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "attention/declare/config_check.h"
#include "attention/sizing/flashinfer.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

// Everything but the scratch. `counted_rows`: rows of the largest launch.
absl::StatusOr<AttentionDeclaration> DeclareCommon(const std::string& backend,
                                                   const AttentionConfig& config,
                                                   std::int64_t counted_rows) {
  AttentionDeclaration d{.backend = backend};
  HOLDFAST_RETURN_IF_ERROR(CheckConfig(backend, config));
  HOLDFAST_ASSIGN_OR_RETURN(const AttentionPath path,
                            ChoosePath(backend, {kFlashInferLocal, kFlashInferShared}, config));
  d.path = path.name();
  d.gives_lse = kFlashInferShared.Selects(config);
  // Its planner is made for one rank's lengths: with several, the null block's are not theirs.
  d.profiling = kFlashInferShared.Selects(config) ? ProfilingSupport::kUnsupported
                                                  : ProfilingSupport::kRequired;
  HOLDFAST_ASSIGN_OR_RETURN(d.kv, LatentPages(backend, config));
  // One counter a row and head, at least one a multiprocessor; kernels reset it themselves.
  const std::int64_t heads = config.heads * config.decode_ranks;
  HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t tiles, Product("counters", {counted_rows, heads}));
  const std::int64_t counters = RoundUp(std::max(static_cast<std::int64_t>(tiles), config.sms), 8);
  HOLDFAST_ASSIGN_OR_RETURN(
      d.persistent, RequestList()
                        .Add("counters", {counters, kI32Bytes},
                             absl::StrCat("(", counters, ") i32: finished tiles; zeroed once"))
                        .Take());
  return d;
}

}  // namespace

absl::StatusOr<AttentionDeclaration> DeclareFlashInferMla(const AttentionConfig& config) {
  HOLDFAST_ASSIGN_OR_RETURN(AttentionDeclaration d,
                            DeclareCommon("flashinfer_mla", config, config.max_sequences));
  HOLDFAST_ASSIGN_OR_RETURN(d.scratch, FlashInferMlaRequests({.dcp = config.decode_ranks}));
  return d;
}

absl::StatusOr<AttentionDeclaration> DeclareFlashInferSparseMla(const AttentionConfig& config) {
  HOLDFAST_ASSIGN_OR_RETURN(AttentionDeclaration d, DeclareCommon("flashinfer_sparse_mla", config,
                                                                  config.max_batched_tokens));
  HOLDFAST_ASSIGN_OR_RETURN(
      d.scratch, FlashInferSparseMlaRequests({.heads = config.heads,
                                              .max_num_batched_tokens = config.max_batched_tokens,
                                              .dcp = config.decode_ranks}));
  return d;
}

}  // namespace holdfast
