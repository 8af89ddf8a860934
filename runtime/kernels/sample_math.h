// The arithmetic of sampling that host and CUDA twins share.
#ifndef HOLDFAST_RUNTIME_KERNELS_SAMPLE_MATH_H_
#define HOLDFAST_RUNTIME_KERNELS_SAMPLE_MATH_H_

#include <math.h>

#include <cstdint>
#include <cstring>

#include "runtime/kernels/philox.h"
#include "runtime/kernels/sample.h"

namespace holdfast {

inline constexpr int kSampleThreads = 1024;

// Orders as the floats do; -0 equals 0. NaN is 0, below everything.
HOLDFAST_HOST_DEVICE inline std::uint32_t OrderedKey(float value) {
  if (value != value) return 0;
  if (value == 0) value = 0;
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// An index and its key in one integer whose maximum is the largest key and, among equals, the
// lowest index. 0 stands for no choice: NaN.
HOLDFAST_HOST_DEVICE inline std::uint64_t Choice(std::uint32_t key, std::int32_t index) {
  return key == 0 ? 0
                  : std::uint64_t{key} << 32 | (0xffffffffu - static_cast<std::uint32_t>(index));
}
HOLDFAST_HOST_DEVICE inline std::int32_t ChosenIndex(std::uint64_t choice) {
  return choice == 0 ? 0
                     : static_cast<std::int32_t>(0xffffffffu - static_cast<std::uint32_t>(choice));
}

HOLDFAST_HOST_DEVICE inline bool IsGreedy(const SamplingRow& row) { return !(row.temperature > 0); }

// g = -ln(-ln(u)), u = 1 - v, v = (word + 1/2) / 2^32. Made from v, so that the large values of g,
// which decide, are the finely spaced ones.
HOLDFAST_HOST_DEVICE inline float Gumbel(const SamplingRow& row, std::int32_t index) {
  const PhiloxWords counter = {
      static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(row.position),
      static_cast<std::uint32_t>(row.request), static_cast<std::uint32_t>(row.request >> 32)};
  const float v = (static_cast<float>(Philox4x32(counter, row.seed).x) + 0.5f) * 0x1p-32f;
  return -logf(-log1pf(-fminf(v, 0x1.fffffep-1f)));  // v can round up to 1
}

// What a candidate is chosen by. `largest` is the row's largest logit, so that no temperature
// overflows.
HOLDFAST_HOST_DEVICE inline float SeededScore(const SamplingRow& row, float logit, float largest,
                                              std::int32_t index) {
  const float relative = logit == largest ? 0.0f : (logit - largest) / row.temperature;
  return relative + Gumbel(row, index);
}

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_SAMPLE_MATH_H_
