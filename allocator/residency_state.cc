#include "allocator/residency_state.h"

#include <utility>

#include "device/error.h"

namespace holdfast {
namespace {

// Every chunk may end in a leaf that is not whole.
std::uint64_t MostLeaves(const std::vector<ArenaGroup>& groups) {
  std::uint64_t leaves = 0;
  for (const ArenaGroup& group : groups) {
    if (group.dropped()) continue;
    const std::uint64_t chunks = group.extent.bytes / group.spec.chunk_bytes + 1;
    const bool whole = group.spec.chunk_bytes % kHashLeafBytes == 0;
    leaves += LeavesOf(group.extent.bytes) + (whole ? 0 : chunks);
  }
  return leaves;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ResidencyState>> ResidencyState::Create(Arena& arena,
                                                                       ResidencyOptions options) {
  auto state = std::make_unique<ResidencyState>(arena, std::move(options));
  Device& device = arena.device();
  state->pool = state->options.pool;
  if (state->pool == nullptr) {
    state->pool = BackingPool::Create(device, {.cap_bytes = state->options.host_cap_bytes});
  }
  HOLDFAST_ASSIGN_OR_RETURN(state->copies, device.CreateStream(arena.name() + " copies"));
  HOLDFAST_ASSIGN_OR_RETURN(state->hashes, device.CreateStream(arena.name() + " hashes"));
  HOLDFAST_ASSIGN_OR_RETURN(state->fills, device.CreateStream(arena.name() + " fills"));
  for (WakeMarks& marks : state->marks) {
    HOLDFAST_ASSIGN_OR_RETURN(marks.copied, device.CreateEvent());
    HOLDFAST_ASSIGN_OR_RETURN(marks.done, device.CreateEvent());
  }
  std::uint64_t leaves = 0;
  {
    std::lock_guard<std::mutex> transition(arena.transition_mutex());
    leaves = MostLeaves(arena.groups());
  }
  if (leaves > 0) {
    absl::StatusOr<HostBuffer> room = device.AllocateHost(leaves * sizeof(Hash128));
    if (!room.ok()) return Annotate(room.status(), "room for leaf hashes");
    state->hash_room = *std::move(room);
  }
  return state;
}

}  // namespace holdfast
