// The pages of a transition: taken away, brought back, or removed for good.
#include "allocator/group_pages.h"
#include "allocator/transition.h"
#include "device/error.h"

namespace holdfast {
namespace {

AddressRange PagesOf(const ArenaGroup& group) { return {group.extent.base, group.committed_bytes}; }

absl::Status UnmapAll(Transition& t) {
  for (const std::size_t g : t.groups) {
    for (ArenaChunk& chunk : t.group(g).chunks) {
      HOLDFAST_RETURN_IF_ERROR(UnmapChunk(t.device(), chunk));
    }
  }
  return absl::OkStatus();
}

absl::Status ReleaseAll(Transition& t, bool dropped) {
  for (const std::size_t g : t.groups) {
    ArenaGroup& group = t.group(g);
    if (group.dropped() != dropped) continue;
    for (ArenaChunk& chunk : group.chunks) {
      HOLDFAST_RETURN_IF_ERROR(ReleaseChunk(t.device(), chunk));
    }
  }
  return absl::OkStatus();
}

Access FinalAccess(const ArenaGroup& group) {
  return group.sealed ? Access::kRead : Access::kReadWrite;
}

}  // namespace

absl::Status TakeAway(Transition& t) {
  t.clock.Begin("unmap");
  HOLDFAST_RETURN_IF_ERROR(UnmapAll(t));
  t.clock.Begin("release");
  HOLDFAST_RETURN_IF_ERROR(ReleaseAll(t, /*dropped=*/false));
  return ReleaseAll(t, /*dropped=*/true);
}

absl::Status BringBack(Transition& t) {
  t.clock.Begin("map");
  for (const std::size_t g : t.groups) {
    for (ArenaChunk& chunk : t.group(g).chunks) {
      HOLDFAST_RETURN_IF_ERROR(MapChunk(t.device(), chunk));
    }
  }
  t.clock.Begin("access");
  for (const std::size_t g : t.groups) {
    const ArenaGroup& group = t.group(g);
    if (group.chunks.empty()) continue;
    // Contents have to be written before a sealed group can be read-only.
    const Access access = AnyLost(group) ? Access::kReadWrite : FinalAccess(group);
    HOLDFAST_RETURN_IF_ERROR(t.device().SetAccess(PagesOf(group), access));
  }
  HOLDFAST_RETURN_IF_ERROR(RestoreKept(t));
  HOLDFAST_RETURN_IF_ERROR(RestoreDropped(t));
  t.clock.Begin("access");
  for (const std::size_t g : t.groups) {
    const ArenaGroup& group = t.group(g);
    if (!group.sealed || !AnyLost(group)) continue;
    HOLDFAST_RETURN_IF_ERROR(t.device().SetAccess(PagesOf(group), Access::kRead));
  }
  SettleContents(t);
  return absl::OkStatus();
}

void RemoveAll(Transition& t) {
  t.clock.Begin("undo");
  Settle(t.device(), t.stream);
  for (const std::size_t g : t.groups) {
    for (ArenaChunk& chunk : t.group(g).chunks) {
      RemoveChunk(t.device(), chunk).IgnoreError();  // what stays is recorded in the chunk
      chunk.lost = true;
    }
  }
}

}  // namespace holdfast
