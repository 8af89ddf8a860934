// What declarations have in common: the check of a configuration, and pages of latent caches.
#ifndef HOLDFAST_ATTENTION_DECLARE_CONFIG_CHECK_H_
#define HOLDFAST_ATTENTION_DECLARE_CONFIG_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attention/declaration.h"

namespace holdfast {

// kInvalidArgument naming the first field outside the range that all backends share.
absl::Status CheckConfig(const std::string& backend, const AttentionConfig& config);

// kUnsupported naming the backend if context is spread over ranks.
absl::Status RefuseContextRanks(const std::string& backend, const AttentionConfig& config);

// A page of one latent row a token: unquantised (latent + rope) elements, or fp8_ds_mla, which
// exists for 512 + 64 elements only (kUnsupported).
absl::StatusOr<KvPageSpec> LatentPages(const std::string& backend, const AttentionConfig& config);

// Scratch for splits over all query lengths up to draft_tokens + 1; none if the planner never
// splits, unless path gating is off.
absl::StatusOr<std::vector<DeclaredRequest>> SplitScratch(const AttentionConfig& config);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_DECLARE_CONFIG_CHECK_H_
