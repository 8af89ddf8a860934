#include "runtime/kernels/synthetic_rows.h"

#include "runtime/kernels/launch.h"

namespace holdfast {
namespace {

void SyntheticEmbedHost(const SyntheticEmbedParams& p) {
  for (std::int32_t row = 0; row < p.rows; ++row) {
    const std::int32_t token = p.tokens[row];
    const bool known = token >= 0 && token < p.vocab;
    p.hidden[row] = known ? HashMix(p.table[token]) : 0;
    *p.salt += p.hidden[row];
  }
}

void SyntheticLogitsHost(const SyntheticLogitsParams& p) {
  for (std::int32_t s = 0; s < p.sequences; ++s) {
    const std::int32_t row = p.logits_row[s];
    float* const logits = p.logits + std::int64_t{s} * p.vocab;
    for (std::int32_t v = 0; v < p.vocab; ++v) {
      logits[v] = row < 0 ? 0.0f : SyntheticLogit(p.hidden[row], p.head[v], *p.digest);
    }
  }
}

}  // namespace

const Op& SyntheticEmbedOp() {
  static const Op op = MakeOp<SyntheticEmbedParams, SyntheticEmbedHost>(
      "synthetic_embed", HOLDFAST_CUDA_TWIN(SyntheticEmbedCuda));
  return op;
}

const Op& SyntheticLogitsOp() {
  static const Op op = MakeOp<SyntheticLogitsParams, SyntheticLogitsHost>(
      "synthetic_logits", HOLDFAST_CUDA_TWIN(SyntheticLogitsCuda));
  return op;
}

LaunchShape SyntheticEmbedShape(const SyntheticEmbedParams& p) {
  return BlockPerRow((p.rows + kRowThreads - 1) / kRowThreads);
}

LaunchShape SyntheticLogitsShape(const SyntheticLogitsParams& p) {
  return BlockPerRow(p.sequences);
}

}  // namespace holdfast
