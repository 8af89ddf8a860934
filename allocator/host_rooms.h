// Where the rooms of backups come from: kept from earlier, ordered ahead of time, or ordered now;
// and how they are given back. Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_HOST_ROOMS_H_
#define HOLDFAST_ALLOCATOR_HOST_ROOMS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/transition.h"

namespace holdfast {

// A room that is being made for a chunk of a transition.
struct OrderedRoom {
  KeptChunk kept;
  BackingOrder* order = nullptr;
  std::size_t item = 0;
  AddressRange* pending = nullptr;  // its entry in ResidencyState::pending, if it comes from there
};

// The rooms that one arena's part still lacks, in the order of its chunks.
using RoomPlan = std::vector<OrderedRoom>;

// Orders what the parts lack, of one pool together, so that the cap is judged for all of them.
// Returns at once; rooms come in the order of the plan. Where host memory is short, backups of
// groups that stay awake make way, if that is enough: they save a copy, no more. On error nothing
// was begun. `orders` owns what is made now.
absl::StatusOr<std::vector<RoomPlan>> OrderRooms(
    Transitions& parts, std::vector<std::unique_ptr<BackingOrder>>& orders);

// Waits for the room and puts it behind the chunk. An error takes back the pending orders, so that
// another attempt begins anew.
absl::Status TakeRoom(ResidencyState& state, const OrderedRoom& room);

// Orders rooms for kept chunks of the tags that lack one and adds them to state.pending.
absl::Status OrderAhead(ResidencyState& state, const std::vector<std::string>& tags);
// Waits for what is pending and puts it behind its chunks, as far as they still want it. The first
// error; nothing is pending afterwards.
absl::Status CollectPending(ResidencyState& state);

// Makes a room for each chunk that lacks one, and waits. On failure some may have been made.
absl::Status MakeRooms(ResidencyState& state, const std::vector<KeptChunk>& chunks);

// Drops the rooms that hold nothing worth keeping: see Residency::TrimHost.
void DropRooms(ResidencyState& state, bool forget_clean);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_HOST_ROOMS_H_
