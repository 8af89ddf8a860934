// Kept contents go to their backups while every page is still there: what changed, and no more.
// Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_COPY_OUT_H_
#define HOLDFAST_ALLOCATOR_COPY_OUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "allocator/host_rooms.h"
#include "allocator/transition.h"

namespace holdfast {

// One arena's part. In three steps, so that the copies of several arenas run beside one another.
// On failure of any of them call SettleStreams; flags of the backups are then honest.
class CopyOut {
 public:
  CopyOut(Transition& t, RoomPlan rooms);

  // Enqueues the hashes of every chunk that is not clean, and the copies of leaves of which no hash
  // is known: there is nothing to compare.
  absl::Status Start();
  // Compares, and enqueues the copies of the leaves that changed; then takes the rooms that were
  // still being made, one after another, and enqueues their copies.
  absl::Status Continue();
  // Waits for all of it; the hashes taken now are those of the backups from here. Counts bytes by
  // tag in `report`.
  absl::Status Finish(TransitionReport& report);

 private:
  struct Moving {
    KeptChunk chunk;
    std::uint64_t copied_bytes = 0;
  };

  bool hashing() const { return t_.state.options.verify || comparing(); }
  bool comparing() const { return t_.state.options.detect_unchanged; }
  // Enqueues copies of the leaves that `pick` names, neighbours in one.
  template <typename Pick>
  absl::Status Copy(Moving& moving, Backup& backup, Pick pick);
  absl::Status CopyChanged();
  void Settle(const Moving& moving, TransitionReport& report);

  Transition& t_;
  RoomPlan rooms_;
  std::vector<KeptChunk> clean_;
  std::vector<Moving> with_room_, without_room_;
  bool hashes_ready_ = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_COPY_OUT_H_
