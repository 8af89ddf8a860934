// The prompts of `holdfast run`: enough of them, and of enough lengths, that every bucket is used.
#ifndef HOLDFAST_TOOLS_PROMPTS_H_
#define HOLDFAST_TOOLS_PROMPTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/generate.h"

namespace holdfast {

struct PromptSet {
  // One Generate call each: batches of 1, 2, 3, 5, 8, 13, 16, 16 requests, so that decode starts in
  // many buckets and passes through smaller ones as sequences end.
  std::vector<std::vector<GenerateRequest>> batches;
  std::size_t count() const;
};

struct SamplingChoice {
  float temperature = 0;
  std::int32_t top_k = 0;
  std::uint64_t seed = 0;
};

// 64 requests, the user's prompts first, then built-in ones. Output lengths vary from half of
// `max_tokens` to all of it. Prompts are cut to fit max_sequence.
PromptSet MakePrompts(const std::vector<std::string>& users, std::int32_t max_tokens,
                      std::int32_t max_sequence, const SamplingChoice& sampling);

// Byte-level text <-> tokens.
std::vector<std::int32_t> Tokenize(const std::string& text);
std::string Detokenize(const std::vector<std::int32_t>& tokens);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_PROMPTS_H_
