#include "allocator/group_pages.h"

#include <utility>

#include "device/error.h"

namespace holdfast {

absl::Status MapChunk(Device& device, ArenaChunk& chunk) {
  if (!chunk.chunk) {
    HOLDFAST_ASSIGN_OR_RETURN(
        chunk.chunk, device.CreateChunk(chunk.range.bytes, {.shareable = chunk.shareable}));
    chunk.lost = true;
  }
  if (!chunk.mapped) {
    HOLDFAST_RETURN_IF_ERROR(device.Map(chunk.range.base, chunk.range.bytes, chunk.chunk));
    chunk.mapped = true;
  }
  return absl::OkStatus();
}

absl::Status UnmapChunk(Device& device, ArenaChunk& chunk) {
  if (!chunk.mapped) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(device.Unmap(chunk.range));
  chunk.mapped = false;
  return absl::OkStatus();
}

absl::Status ReleaseChunk(Device& device, ArenaChunk& chunk) {
  if (!chunk.chunk) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(device.ReleaseChunk(chunk.chunk));
  chunk.chunk = {};
  chunk.lost = true;
  return absl::OkStatus();
}

absl::Status RemoveChunk(Device& device, ArenaChunk& chunk) {
  // A mapped chunk keeps its handle: a later attempt needs both to be true to the device.
  HOLDFAST_RETURN_IF_ERROR(UnmapChunk(device, chunk));
  return ReleaseChunk(device, chunk);
}

void Settle(Device& device, Stream& stream) {
  if (!device.Synchronize(stream).ok()) device.Synchronize(stream).IgnoreError();
}

}  // namespace holdfast
