#include "attention/declare/mla_dense.h"

#include "attention/declare/config_check.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<AttentionDeclaration> DeclareMlaDense(const AttentionConfig& config) {
  AttentionDeclaration d{
      .backend = "mla_dense", .profiling = ProfilingSupport::kRequired, .gives_lse = true};
  HOLDFAST_RETURN_IF_ERROR(CheckConfig(d.backend, config));
  HOLDFAST_RETURN_IF_ERROR(RefuseContextRanks(d.backend, config));
  if (config.quantized) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = d.backend},
                     "quantized is 1; it reads an unquantised cache");
  }
  HOLDFAST_ASSIGN_OR_RETURN(const AttentionPath path,
                            ChoosePath(d.backend, {kDenseSinglePass, kDenseSplitKv}, config));
  d.path = path.name();
  HOLDFAST_ASSIGN_OR_RETURN(d.scratch, SplitScratch(config));
  HOLDFAST_ASSIGN_OR_RETURN(d.kv, LatentPages(d.backend, config));
  return d;
}

}  // namespace holdfast
