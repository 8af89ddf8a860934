// Vector loads and stores of kernel elements as floats. Addresses are aligned to the whole vector.
#ifndef HOLDFAST_ATTENTION_KERNELS_VECTOR_CUH_
#define HOLDFAST_ATTENTION_KERNELS_VECTOR_CUH_

#include <cstdint>

#include "device/element.h"

namespace holdfast {

// The two elements of a 32-bit word, the lower address first.
__device__ inline void UnpackBf16(std::uint32_t word, float& first, float& second) {
  first = __uint_as_float(word << 16);
  second = __uint_as_float(word & 0xffff0000u);
}
__device__ inline std::uint32_t PackBf16(float first, float second) {
  return FromFloat<Bf16>(first).bits | static_cast<std::uint32_t>(FromFloat<Bf16>(second).bits)
                                           << 16;
}

__device__ inline void LoadFloats(const float* from, float (&to)[4]) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
__device__ inline void LoadFloats(const float* from, float (&to)[8]) {
  const float4 a = *reinterpret_cast<const float4*>(from);
  const float4 b = *reinterpret_cast<const float4*>(from + 4);
  to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
  to[4] = b.x, to[5] = b.y, to[6] = b.z, to[7] = b.w;
}
__device__ inline void LoadFloats(const Bf16* from, float (&to)[4]) {
  const uint2 v = *reinterpret_cast<const uint2*>(from);
  UnpackBf16(v.x, to[0], to[1]);
  UnpackBf16(v.y, to[2], to[3]);
}
__device__ inline void LoadFloats(const Bf16* from, float (&to)[8]) {
  const uint4 v = *reinterpret_cast<const uint4*>(from);
  UnpackBf16(v.x, to[0], to[1]);
  UnpackBf16(v.y, to[2], to[3]);
  UnpackBf16(v.z, to[4], to[5]);
  UnpackBf16(v.w, to[6], to[7]);
}

__device__ inline void StoreFloats(const float (&from)[4], float* to) {
  *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
}
__device__ inline void StoreFloats(const float (&from)[4], Bf16* to) {
  *reinterpret_cast<uint2*>(to) =
      make_uint2(PackBf16(from[0], from[1]), PackBf16(from[2], from[3]));
}

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_KERNELS_VECTOR_CUH_
