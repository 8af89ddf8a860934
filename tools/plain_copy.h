// What the link does: the same bytes copied between pinned host memory and the device, and nothing
// else. The measure that every figure of `holdfast bench sleep` is also given in.
#ifndef HOLDFAST_TOOLS_PLAIN_COPY_H_
#define HOLDFAST_TOOLS_PLAIN_COPY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "device/device.h"

namespace holdfast {

struct PlainCopy {
  std::uint64_t bytes = 0;
  double out_seconds = 0;  // device to host: median of three, after one that is not counted
  double in_seconds = 0;   // host to device
};

// Device and host memory that it takes meanwhile: the pieces are used in turn, at most this much.
std::uint64_t PlainCopyRoom(std::uint64_t bytes, std::uint64_t piece_bytes);

// Copies `bytes` in pieces of `piece_bytes` through buffers of its own.
absl::StatusOr<PlainCopy> MeasurePlainCopy(Device& device, std::uint64_t bytes,
                                           std::uint64_t piece_bytes);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_PLAIN_COPY_H_
