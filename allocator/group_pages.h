// Pages of one chunk: made and removed step by step, so that a failure in the middle leaves a
// recorded state from which either direction can be taken. Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_GROUP_PAGES_H_
#define HOLDFAST_ALLOCATOR_GROUP_PAGES_H_

#include "absl/status/status.h"
#include "allocator/arena.h"
#include "device/device.h"

namespace holdfast {

// Creates the physical memory if there is none (its contents are then lost) and maps it if it is
// not mapped. No access is set. On failure the chunk records what was reached.
absl::Status MapChunk(Device& device, ArenaChunk& chunk);
// Unmaps, if mapped.
absl::Status UnmapChunk(Device& device, ArenaChunk& chunk);
// Gives the physical memory back, if held. Its contents are lost.
absl::Status ReleaseChunk(Device& device, ArenaChunk& chunk);

// Both, as far as they go: what could not be removed stays recorded. The first error, if any.
absl::Status RemoveChunk(Device& device, ArenaChunk& chunk);

// Waits until the stream is idle before pages under it are removed. One retry: a failure here must
// not become work that runs into unmapped memory.
void Settle(Device& device, Stream& stream);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_GROUP_PAGES_H_
