// The two kernels of the toy subject. One thread runs all of either: a handful of rows.
#ifndef HOLDFAST_TESTING_TOY_OPS_H_
#define HOLDFAST_TESTING_TOY_OPS_H_

#include <cstdint>

#include "device/op.h"

namespace holdfast::testing {

inline constexpr std::int32_t kToyWidth = 32;

// mixed[r][c] = sum over k of x[r][k] * weights[k][c]; pad rows (r >= *real) give 0.
struct ToyMixParams {
  const float* x;            // (rows, kToyWidth)
  const float* weights;      // (kToyWidth, kToyWidth)
  float* mixed;              // (rows, kToyWidth)
  const std::int32_t* real;  // one: how many rows are real
  std::int32_t rows;
  std::int32_t stale_scratch;  // the fault: adds what `mixed` held before
  std::int32_t pads_count;     // the fault: a pad row's first element is added to every real row
};
const Op& ToyMixOp();

// kv[r] = mixed[r]; out[r][c] = kv[r][c] * table[c] + r for real rows, 0 for pads; ++*counter.
struct ToyFinishParams {
  const float* mixed;        // (rows, kToyWidth)
  const float* table;        // (kToyWidth)
  float* kv;                 // (rows, kToyWidth)
  float* out;                // (rows, kToyWidth)
  std::uint64_t* counter;    // one: runs so far
  const std::int32_t* real;  // one
  std::int32_t rows;
};
const Op& ToyFinishOp();

#if HOLDFAST_WITH_CUDA
const void* ToyMixCuda();
const void* ToyFinishCuda();
#endif

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_TOY_OPS_H_
