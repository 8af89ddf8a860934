// The neighbour: another process that takes the memory a sleeping engine gave up, writes over it,
// and gives it back. After it, no wake can pass by luck.
#ifndef HOLDFAST_TOOLS_SCRIBBLE_H_
#define HOLDFAST_TOOLS_SCRIBBLE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace holdfast {

// Takes `bytes` (rounded down to the granularity) of the device, fills them with 0xA5, checks one
// word of each chunk, gives them back. kOutOfMemory if they are not to be had.
absl::Status Scribble(const std::string& device_spec, std::uint64_t bytes);

// Runs `holdfast scribble` as a child process of this program and waits for it. An error carries
// what the child said.
absl::Status ScribbleInChild(const std::string& device_spec, std::uint64_t bytes);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_SCRIBBLE_H_
