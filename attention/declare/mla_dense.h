// Dense multi-head latent attention: what it declares.
#ifndef HOLDFAST_ATTENTION_DECLARE_MLA_DENSE_H_
#define HOLDFAST_ATTENTION_DECLARE_MLA_DENSE_H_

#include "absl/status/statusor.h"
#include "attention/declaration.h"

namespace holdfast {

// A row's keys are read in one pass, or split among the device's multiprocessors and merged.
inline constexpr AttentionPath kDenseSinglePass("single_pass", [](const AttentionConfig& config) {
  return config.split_parts == 1;
});
inline constexpr AttentionPath kDenseSplitKv("split_kv", [](const AttentionConfig& config) {
  return config.split_parts > 1;
});

absl::StatusOr<AttentionDeclaration> DeclareMlaDense(const AttentionConfig& config);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_DECLARE_MLA_DENSE_H_
