// Expert layers: two workspaces of a fused expert kernel, the first shared with its output.
// Source: vLLM's modular expert kernels, Triton shapes.
#ifndef HOLDFAST_ATTENTION_SIZING_MOE_H_
#define HOLDFAST_ATTENTION_SIZING_MOE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/sizing/rule.h"

namespace holdfast {

struct MoeKeys {
  std::int64_t max_num_batched_tokens = 0, topk = 0, n = 0, k = 0;
};
absl::StatusOr<std::vector<DeclaredRequest>> MoeRequests(const MoeKeys& keys);
SizingRule MoeRule();

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_MOE_H_
