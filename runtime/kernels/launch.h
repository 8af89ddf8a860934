// The block size of the row-wise kernels of this folder: each is launched with one block a row.
#ifndef HOLDFAST_RUNTIME_KERNELS_LAUNCH_H_
#define HOLDFAST_RUNTIME_KERNELS_LAUNCH_H_

#include <cstdint>

#include "device/op.h"

namespace holdfast {

inline constexpr int kRowThreads = 256;

inline LaunchShape BlockPerRow(std::int32_t rows, int threads = kRowThreads) {
  return {.grid = {static_cast<std::uint32_t>(rows)},
          .block = {static_cast<std::uint32_t>(threads)}};
}

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_LAUNCH_H_
