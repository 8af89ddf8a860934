#include "allocator/take_away.h"

#include "allocator/group_pages.h"
#include "device/error.h"

namespace holdfast {
namespace {

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

}  // namespace

absl::Status TakeAway(Transitions& parts) {
  parts.front().clock.Begin(Stage::kUnmap);
  for (Transition& t : parts) HOLDFAST_RETURN_IF_ERROR(UnmapAll(t));
  parts.front().clock.Begin(Stage::kRelease);
  for (const bool dropped : {false, true}) {
    for (Transition& t : parts) HOLDFAST_RETURN_IF_ERROR(ReleaseAll(t, dropped));
  }
  return absl::OkStatus();
}

void RemoveAll(Transition& t) {
  t.clock.Begin(Stage::kUndo);
  SettleStreams(t);
  for (const std::size_t g : t.groups) {
    for (ArenaChunk& chunk : t.group(g).chunks) {
      RemoveChunk(t.device(), chunk).IgnoreError();  // what stays is recorded in the chunk
      chunk.lost = true;
    }
  }
}

absl::Status RemoveLeftovers(Transition& t) {
  for (const std::size_t g : SelectGroups(t.arena(), t.tags, /*asleep=*/true)) {
    for (ArenaChunk& chunk : t.group(g).chunks) {
      HOLDFAST_RETURN_IF_ERROR(RemoveChunk(t.device(), chunk));
    }
  }
  return absl::OkStatus();
}

}  // namespace holdfast
