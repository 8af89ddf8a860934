// Elements of kernels that exist for f32 and bf16: the same conversions on host and GPU, so that
// twins of a kernel can share their arithmetic.
#ifndef HOLDFAST_DEVICE_ELEMENT_H_
#define HOLDFAST_DEVICE_ELEMENT_H_

#include <cstdint>
#include <cstring>

#include "device/hash.h"  // HOLDFAST_HOST_DEVICE

namespace holdfast {

struct Bf16 {
  std::uint16_t bits;
};

HOLDFAST_HOST_DEVICE inline float ToFloat(float value) { return value; }
HOLDFAST_HOST_DEVICE inline float ToFloat(Bf16 value) {
  const std::uint32_t wide = static_cast<std::uint32_t>(value.bits) << 16;
  float out;
  memcpy(&out, &wide, sizeof(out));
  return out;
}

// Rounds to nearest even; NaN stays NaN.
template <typename T>
HOLDFAST_HOST_DEVICE inline T FromFloat(float value);
template <>
HOLDFAST_HOST_DEVICE inline float FromFloat<float>(float value) {
  return value;
}
template <>
HOLDFAST_HOST_DEVICE inline Bf16 FromFloat<Bf16>(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_ELEMENT_H_
