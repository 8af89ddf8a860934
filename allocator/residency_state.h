// What a Residency owns between transitions. Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_RESIDENCY_STATE_H_
#define HOLDFAST_ALLOCATOR_RESIDENCY_STATE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/backing_pool.h"
#include "allocator/backup.h"
#include "allocator/residency.h"
#include "allocator/transition_progress.h"
#include "device/device.h"

namespace holdfast {

// Rooms that were ordered ahead of time: item i of the order is for the contents rooms[i], of which
// no bytes are left once it was taken.
struct PendingRooms {
  std::shared_ptr<BackingOrder> order;  // also held by whoever waits for it without the mutex
  std::vector<AddressRange> rooms;
};

// Marks of one chunk on its way back: its copy has run; its hash too.
struct WakeMarks {
  std::unique_ptr<Event> copied, done;
};

// How many chunks may be on their way at once. The copy engine then never waits for the calling
// thread, and a failure has little to undo.
inline constexpr std::size_t kWakeWindow = 6;

// Everything but the constants and `progress` under Arena::transition_mutex().
struct ResidencyState {
  static absl::StatusOr<std::unique_ptr<ResidencyState>> Create(Arena& arena,
                                                                ResidencyOptions options);
  ResidencyState(Arena& arena, ResidencyOptions options)
      : arena(arena), options(std::move(options)), progress(arena) {}

  Device& device() const { return arena.device(); }
  Hash128* leaf_hashes() const { return reinterpret_cast<Hash128*>(hash_room.data()); }

  Arena& arena;
  const ResidencyOptions options;
  std::shared_ptr<BackingPool> pool;
  // Copies, hashes and fills each have an order of their own, so that none waits for another.
  std::unique_ptr<Stream> copies, hashes, fills;
  std::array<WakeMarks, kWakeWindow> marks;
  // Pinned room for the hashes of every leaf that the kept groups can ever have: made once, because
  // giving pinned memory back may wait for running kernels.
  HostBuffer hash_room;
  Backups backups;
  std::vector<PendingRooms> pending;
  ResidencyFaults faults;
  TransitionProgress progress;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_RESIDENCY_STATE_H_
