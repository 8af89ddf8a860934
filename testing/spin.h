// A kernel that keeps a stream busy for a given time, on both devices: work that is still running
// when a transition begins.
#ifndef HOLDFAST_TESTING_SPIN_H_
#define HOLDFAST_TESTING_SPIN_H_

#include <cstdint>

#include "device/op.h"

namespace holdfast::testing {

struct SpinParams {
  std::uint64_t microseconds;
};
const Op& SpinOp();  // one thread

#if HOLDFAST_WITH_CUDA
const void* SpinCuda();
#endif

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_SPIN_H_
