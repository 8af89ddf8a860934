// Contents for benches: words that look random, differ everywhere, and depend on seed and position
// alone. Made at the speed of memory.
#ifndef HOLDFAST_TOOLS_KERNELS_CONTENTS_H_
#define HOLDFAST_TOOLS_KERNELS_CONTENTS_H_

#include <cstdint>

#include "device/hash.h"
#include "device/op.h"

namespace holdfast {

// words[i] = HashMix(seed + i)
struct ContentsParams {
  std::uint64_t* words;  // (count)
  std::uint64_t count;
  std::uint64_t seed;
};
const Op& ContentsOp();
LaunchShape ContentsShape(std::uint64_t count);

#if HOLDFAST_WITH_CUDA
const void* ContentsCuda();
#endif

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_KERNELS_CONTENTS_H_
