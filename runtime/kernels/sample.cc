#include "runtime/kernels/sample.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "runtime/kernels/launch.h"
#include "runtime/kernels/sample_math.h"

namespace holdfast {
namespace {

std::int32_t Greedy(const float* logits, std::int32_t vocab) {
  std::uint64_t best = 0;
  for (std::int32_t i = 0; i < vocab; ++i) best = std::max(best, Choice(OrderedKey(logits[i]), i));
  return ChosenIndex(best);
}

// The key of the k-th largest logit; 0, which admits all, if top_k does not limit.
std::uint32_t Threshold(const float* logits, std::int32_t vocab, std::int32_t top_k) {
  if (top_k <= 0 || top_k >= vocab) return 0;
  std::vector<std::uint32_t> keys(vocab);
  std::transform(logits, logits + vocab, keys.begin(), OrderedKey);
  std::nth_element(keys.begin(), keys.begin() + (top_k - 1), keys.end(), std::greater<>());
  return keys[top_k - 1];
}

std::int32_t Draw(const SamplingRow& row, const float* logits, std::int32_t vocab) {
  const float largest = logits[Greedy(logits, vocab)];
  const std::uint32_t threshold = Threshold(logits, vocab, row.top_k);
  std::uint64_t best = 0;
  for (std::int32_t i = 0; i < vocab; ++i) {
    const std::uint32_t key = OrderedKey(logits[i]);
    if (key == 0 || key < threshold) continue;
    best = std::max(best, Choice(OrderedKey(SeededScore(row, logits[i], largest, i)), i));
  }
  return ChosenIndex(best);
}

void SampleHost(const SampleParams& p) {
  for (std::int64_t r = 0; r < p.count; ++r) {
    const SamplingRow& row = p.rows[r];
    const float* logits = p.logits + r * p.vocab;
    if (row.active == 0) {
      p.tokens[r] = -1;
    } else {
      p.tokens[r] = IsGreedy(row) ? Greedy(logits, p.vocab) : Draw(row, logits, p.vocab);
    }
  }
  if (p.step_count != nullptr) ++*p.step_count;
}

}  // namespace

const Op& SampleOp() {
  static const Op op = MakeOp<SampleParams, SampleHost>("sample", HOLDFAST_CUDA_TWIN(SampleCuda));
  return op;
}

LaunchShape SampleShape(const SampleParams& p) { return BlockPerRow(p.count, kSampleThreads); }

}  // namespace holdfast
