// Small kernels with both twins, for tests of everything that launches.
#ifndef HOLDFAST_TESTS_DEVICE_TEST_OPS_H_
#define HOLDFAST_TESTS_DEVICE_TEST_OPS_H_

#include <cstdint>

#include "device/op.h"

namespace holdfast {

// out[i] = a[i] + b[i] for i in [0, count)
struct AddParams {
  const float* a;  // (count)
  const float* b;  // (count)
  float* out;      // (count)
  std::int64_t count;
};
const Op& AddOp();

// data[i] = data[i] * factor + offset
struct ScaleParams {
  float* data;  // (count)
  std::int64_t count;
  float factor;
  float offset;
};
const Op& ScaleOp();

// *target = value
struct PokeParams {
  std::uint64_t* target;
  std::uint64_t value;
};
const Op& PokeOp();

// *target = *source
struct PeekParams {
  const std::uint64_t* source;
  std::uint64_t* target;
};
const Op& PeekOp();

// Keeps the stream busy.
struct SpinParams {
  std::uint64_t microseconds;
};
const Op& SpinOp();

// A batch under one dynamic scale, as a per-tensor quantisation has it: s = max |x| over the real
// rows; out = round(127 x / s) s / 127 for those, 0 for pad rows; kv[slots[r]] = out[r][0] for
// slots
// >= 0. With pads_count the pad rows take part in everything: what a padded batch must not do.
struct QuantizeRowsParams {
  const float* x;             // (rows, width)
  float* out;                 // (rows, width)
  float* kv;                  // one float a slot
  const std::int32_t* slots;  // (rows), -1 for none
  const std::int32_t* real;   // one: how many rows are real
  std::int32_t rows, width;
  std::int32_t pads_count;
};
const Op& QuantizeRowsOp();

// A launch of one thread for each of `count` elements.
inline LaunchShape ShapeFor(std::int64_t count) {
  return {.grid = {static_cast<std::uint32_t>((count + 255) / 256)}, .block = {256}};
}

#if HOLDFAST_WITH_CUDA
const void* AddCuda();
const void* ScaleCuda();
const void* PokeCuda();
const void* PeekCuda();
const void* SpinCuda();
const void* QuantizeRowsCuda();
#endif

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_DEVICE_TEST_OPS_H_
