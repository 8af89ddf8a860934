// Rotary positions: one pair of elements, the same on host and GPU. See mla_prepare.h for the
// formulas.
#ifndef HOLDFAST_RUNTIME_KERNELS_ROPE_H_
#define HOLDFAST_RUNTIME_KERNELS_ROPE_H_

#include "device/element.h"

namespace holdfast {

struct RopePair {
  float first, second;  // stored at i and i + rope / 2
};

// Pair i of the `rope` elements at x; `table` is the position's row: rope/2 cosines, then rope/2
// sines.
template <typename T>
HOLDFAST_HOST_DEVICE inline RopePair Rotate(const T* x, const float* table, int i, int rope,
                                            bool interleaved) {
  const int half = rope / 2;
  const float a = ToFloat(x[interleaved ? 2 * i : i]);
  const float b = ToFloat(x[interleaved ? 2 * i + 1 : i + half]);
  const float c = table[i], s = table[i + half];
  return {a * c - b * s, b * c + a * s};
}

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_ROPE_H_
