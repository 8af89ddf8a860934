// The bodies of the toy's kernels, one for both twins.
#ifndef HOLDFAST_TESTING_TOY_MATH_H_
#define HOLDFAST_TESTING_TOY_MATH_H_

#include "device/hash.h"
#include "testing/toy_ops.h"

namespace holdfast::testing {

HOLDFAST_HOST_DEVICE inline void ToyMix(const ToyMixParams& p) {
  const std::int32_t real = *p.real;
  float pads = 0;
  if (p.pads_count != 0) {
    for (std::int32_t r = real; r < p.rows; ++r) pads += p.x[r * kToyWidth];
  }
  for (std::int32_t r = 0; r < p.rows; ++r) {
    for (std::int32_t c = 0; c < kToyWidth; ++c) {
      float sum = p.stale_scratch != 0 ? p.mixed[r * kToyWidth + c] : 0;
      for (std::int32_t k = 0; k < kToyWidth; ++k) {
        sum += p.x[r * kToyWidth + k] * p.weights[k * kToyWidth + c];
      }
      p.mixed[r * kToyWidth + c] = r < real ? sum + pads : 0;
    }
  }
}

HOLDFAST_HOST_DEVICE inline void ToyFinish(const ToyFinishParams& p) {
  const std::int32_t real = *p.real;
  for (std::int32_t r = 0; r < p.rows; ++r) {
    for (std::int32_t c = 0; c < kToyWidth; ++c) {
      const std::int32_t i = r * kToyWidth + c;
      if (r < real) p.kv[i] = p.mixed[i];
      p.out[i] = r < real ? p.kv[i] * p.table[c] + static_cast<float>(r) : 0;
    }
  }
  ++*p.counter;
}

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_TOY_MATH_H_
