// Random data, conversions and error measures for tests of kernels in f32 and bf16.
#ifndef HOLDFAST_TESTS_ATTENTION_NUMBERS_H_
#define HOLDFAST_TESTS_ATTENTION_NUMBERS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "device/dtype.h"
#include "device/element.h"

namespace holdfast {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
constexpr DType kTypeOf = DType::kF32;
template <>
inline constexpr DType kTypeOf<Bf16> = DType::kBF16;

// The largest accepted RelativeL2: of float arithmetic, and of a result rounded to bf16.
template <typename T>
constexpr double kThreshold = 1e-5;
template <>
inline constexpr double kThreshold<Bf16> = 3e-3;

// `count` values of N(mean, deviation^2).
inline std::vector<float> Normal(std::mt19937& random, std::uint64_t count, float mean = 0,
                                 float deviation = 1) {
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

template <typename T>
std::vector<T> Stored(const std::vector<float>& values) {
  std::vector<T> stored(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) stored[i] = FromFloat<T>(values[i]);
  return stored;
}

template <typename T>
std::vector<double> Widened(const std::vector<T>& stored) {
  std::vector<double> values(stored.size());
  for (std::size_t i = 0; i < stored.size(); ++i) values[i] = ToFloat(stored[i]);
  return values;
}

// |actual - expected| / |expected| over all elements; infinite if sizes differ or a NaN is among
// them.
inline double RelativeL2(const std::vector<double>& actual, const std::vector<double>& expected) {
  if (actual.size() != expected.size()) return kInfinity;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  if (size == 0) return difference == 0 ? 0 : kInfinity;
  const double error = std::sqrt(difference / size);
  return std::isnan(error) ? kInfinity : error;
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_ATTENTION_NUMBERS_H_
