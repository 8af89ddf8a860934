// Sampling inside the graph: greedy, or seeded temperature and top-k, one row a sequence.
//
//   greedy (temperature <= 0): the largest logit, the lowest index among equals.
//   seeded: of the candidates (logit >= the k-th largest; all if top_k is 0 or >= vocab), the index
//   with the largest (logit - the row's largest logit) / temperature + g_i, where g_i =
//   -ln(-ln(u_i)) and u_i in (0, 1) comes from Philox4x32-10 keyed by the seed, at counter (index,
//   position, request): the Gumbel-max trick draws exactly from the softmax. Equal inputs give
//   equal tokens whatever the batch, bucket or history. Logits equal to the k-th are all
//   candidates. NaN logits are never chosen; a row of NaN gives 0. NaN temperature is greedy;
//   negative top_k is 0.
#ifndef HOLDFAST_RUNTIME_KERNELS_SAMPLE_H_
#define HOLDFAST_RUNTIME_KERNELS_SAMPLE_H_

#include <cstdint>

#include "device/op.h"

namespace holdfast {

struct SamplingRow {
  std::uint64_t seed = 0;
  std::uint64_t request = 0;  // names the request for life
  std::int32_t position = 0;  // of the token being drawn
  std::int32_t top_k = 0;     // 0 = no limit
  float temperature = 0;      // <= 0: greedy
  std::int32_t active = 0;    // 0 = pad: token -1
};

struct SampleParams {
  const float* logits;        // (rows, vocab)
  const SamplingRow* rows;    // (count)
  std::int32_t* tokens;       // (count)
  std::uint64_t* step_count;  // one counter, raised by 1 each run; may be null
  std::int32_t count, vocab;  // both >= 1
};
const Op& SampleOp();
LaunchShape SampleShape(const SampleParams& params);

// The CUDA twin: address of a __global__ function.
const void* SampleCuda();

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_SAMPLE_H_
