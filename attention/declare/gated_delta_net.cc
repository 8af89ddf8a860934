#include "attention/declare/gated_delta_net.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "attention/check_field.h"
#include "attention/declare/config_check.h"
#include "attention/sizing/gated_delta_net.h"
#include "attention/sizing/kv_pages.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "gated_delta_net";
constexpr std::int64_t kLargestGraph = 1 << 20;

}  // namespace

absl::StatusOr<AttentionDeclaration> DeclareGatedDeltaNet(const AttentionConfig& config) {
  AttentionDeclaration d{
      .backend = kName, .path = kChunkedDelta.name(), .profiling = ProfilingSupport::kNeutral};
  HOLDFAST_RETURN_IF_ERROR(CheckConfig(kName, config));
  HOLDFAST_RETURN_IF_ERROR(RefuseContextRanks(kName, config));
  if (config.key_heads < 1 || config.heads % config.key_heads != 0) {
    return RefuseField(kName, "key_heads", absl::StrCat(config.key_heads),
                       absl::StrCat("a divisor of heads, ", config.heads));
  }
  HOLDFAST_ASSIGN_OR_RETURN(
      d.scratch, GatedDeltaNetPrefill(config.max_batched_tokens, config.heads, config.latent));
  HOLDFAST_ASSIGN_OR_RETURN(
      d.persistent, GatedDeltaNetRequests(
                        {.max_num_seqs = config.max_sequences,
                         .num_speculative_tokens = config.draft_tokens,
                         .max_capture_size = std::min(config.max_batched_tokens, kLargestGraph)}));
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::vector<DeclaredRequest> state,
      KvStateRequests(
          {.key_heads = config.key_heads, .value_heads = config.heads, .head_dim = config.latent}));
  d.kv = {.kind = KvKind::kState, .layout = "delta_state_f32"};
  HOLDFAST_ASSIGN_OR_RETURN(d.kv.page_bytes, TotalBytes(state));
  return d;
}

}  // namespace holdfast
