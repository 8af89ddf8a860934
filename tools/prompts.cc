#include "tools/prompts.h"

#include <algorithm>
#include <array>

namespace holdfast {
namespace {

constexpr std::array<std::size_t, 8> kBatchSizes = {1, 2, 3, 5, 8, 13, 16, 16};  // 64 in all

constexpr std::array<const char*, 16> kOpenings = {
    "In the beginning ",
    "And it came to pass in those days, that ",
    "The king said unto ",
    "Blessed is the man that ",
    "And the children of Israel ",
    "Then went he up into the mountain, and ",
    "Behold, ",
    "The words of the wise are ",
    "And he spake unto them, saying, ",
    "Now these are the names of ",
    "For the day is near, and ",
    "She went out to meet him, and ",
    "When the morning was come, ",
    "A man that had ",
    "The earth was ",
    "And the sea ",
};

// Opening i, led by `lead` other openings: prompts of many lengths that still read as text.
std::string BuiltIn(std::size_t i) {
  std::string text;
  for (std::size_t lead = 0; lead < i % 4; ++lead) {
    text += kOpenings[(i * 5 + lead * 3 + 1) % kOpenings.size()];
    text += "the people. ";
  }
  return text + kOpenings[i % kOpenings.size()];
}

}  // namespace

std::size_t PromptSet::count() const {
  std::size_t count = 0;
  for (const auto& batch : batches) count += batch.size();
  return count;
}

PromptSet MakePrompts(const std::vector<std::string>& users, std::int32_t max_tokens,
                      std::int32_t max_sequence, const SamplingChoice& sampling) {
  PromptSet set;
  std::size_t next = 0;
  const auto room = static_cast<std::size_t>(std::max(1, max_sequence - max_tokens));
  for (std::size_t size : kBatchSizes) {
    std::vector<GenerateRequest>& batch = set.batches.emplace_back();
    for (std::size_t i = 0; i < size; ++i, ++next) {
      std::string text = next < users.size() ? users[next] : BuiltIn(next);
      if (next >= users.size()) text.resize(std::min(text.size(), room));
      batch.push_back({.prompt = Tokenize(text),
                       .max_tokens = std::max(
                           1, max_tokens - static_cast<std::int32_t>(next % 4) * max_tokens / 8),
                       .temperature = sampling.temperature,
                       .top_k = sampling.top_k,
                       .seed = sampling.seed,
                       .request = next,
                       .forced = {}});
    }
  }
  return set;
}

std::vector<std::int32_t> Tokenize(const std::string& text) {
  std::vector<std::int32_t> tokens;
  for (char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string Detokenize(const std::vector<std::int32_t>& tokens) {
  std::string text;
  for (std::int32_t token : tokens) text.push_back(static_cast<char>(token));
  return text;
}

}  // namespace holdfast
