// DeepSeek-V4's attention: window and compressed keys in one softmax. Source: vLLM's backends for
// it.
#ifndef HOLDFAST_ATTENTION_SIZING_DEEPSEEK_V4_H_
#define HOLDFAST_ATTENTION_SIZING_DEEPSEEK_V4_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/sizing/rule.h"

namespace holdfast {

enum DeepSeekV4Kernel : std::int64_t { kV4FlashMla, kV4FlashInfer, kV4Sm120Decode };

struct DeepSeekV4Keys {
  std::int64_t kernel = kV4FlashMla;
  std::int64_t max_model_len = 0, max_num_batched_tokens = 0, heads = 0;
  std::int64_t window = 128, compress_ratio = 1, combined_topk = 0;  // FlashMLA prefill
  std::int64_t topk = 128, extra_topk = 0;                           // sm120 decode
};
absl::StatusOr<std::vector<DeclaredRequest>> DeepSeekV4Requests(const DeepSeekV4Keys& keys);
SizingRule DeepSeekV4Rule();

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_DEEPSEEK_V4_H_
