// Sums over one row on the host.
#ifndef HOLDFAST_RUNTIME_KERNELS_ROW_MATH_H_
#define HOLDFAST_RUNTIME_KERNELS_ROW_MATH_H_

#include <cmath>
#include <cstdint>

namespace holdfast {

// 1 / sqrt(mean(x^2) + epsilon), summed in 8 lanes so that the compiler can use vector registers.
inline float InverseRms(const float* x, std::int32_t count, float epsilon) {
  constexpr std::int32_t kLanes = 8;
  float lanes[kLanes] = {};
  std::int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int32_t l = 0; l < kLanes; ++l) lanes[l] += x[i + l] * x[i + l];
  }
  float sum = 0;
  for (; i < count; ++i) sum += x[i] * x[i];
  for (float lane : lanes) sum += lane;
  return 1.0f / std::sqrt(sum / static_cast<float>(count) + epsilon);
}

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_ROW_MATH_H_
