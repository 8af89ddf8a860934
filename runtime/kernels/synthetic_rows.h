// The two ends of a synthetic step: one word of state a row, from its token; logits from it.
#ifndef HOLDFAST_RUNTIME_KERNELS_SYNTHETIC_ROWS_H_
#define HOLDFAST_RUNTIME_KERNELS_SYNTHETIC_ROWS_H_

#include <cstdint>

#include "device/hash.h"
#include "device/op.h"

namespace holdfast {

// hidden[r] = HashMix(table[tokens[r]]), 0 for a token outside [0, vocab) (pads are -1);
// *salt += the sum of them: what the step was given, as one word.
struct SyntheticEmbedParams {
  const std::int32_t* tokens;  // (rows)
  const std::uint64_t* table;  // (vocab)
  std::uint64_t* hidden;       // (rows)
  std::uint64_t* salt;
  std::int32_t rows, vocab;
};
const Op& SyntheticEmbedOp();
LaunchShape SyntheticEmbedShape(const SyntheticEmbedParams& params);

// logits[s][v] in [-4, 4), from hidden[logits_row[s]], head[v] and the step's digest, which is 0 if
// every byte was as it must be; 0 for pads (logits_row[s] < 0).
struct SyntheticLogitsParams {
  const std::uint64_t* hidden;      // (rows)
  const std::uint64_t* head;        // (vocab)
  const std::int32_t* logits_row;   // (sequences)
  const std::uint64_t* digest;
  float* logits;                    // (sequences, vocab)
  std::int32_t sequences, vocab;
};
const Op& SyntheticLogitsOp();
LaunchShape SyntheticLogitsShape(const SyntheticLogitsParams& params);

HOLDFAST_HOST_DEVICE inline float SyntheticLogit(std::uint64_t hidden, std::uint64_t head,
                                                 std::uint64_t digest) {
  const std::uint64_t word = HashMix((hidden ^ head) + digest);
  // 24 bits: exact in a float.
  return static_cast<float>(static_cast<std::int32_t>(word >> 40)) * (8.0f / 16777216.0f) - 4.0f;
}

// The CUDA twins: addresses of __global__ functions.
const void* SyntheticEmbedCuda();
const void* SyntheticLogitsCuda();

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_SYNTHETIC_ROWS_H_
