// Pinned slots for what the host prepares for a replay. A copy from pinned memory is read when the
// GPU comes to it, so one buffer written for the next batch too early changes the batch before;
// here a slot is handed out again only after its copy has run.
//
//   HOLDFAST_ASSIGN_OR_RETURN(std::byte* slot, ring->Acquire());
//   ... write the batch to slot ...
//   HOLDFAST_RETURN_IF_ERROR(ring->Send(input, bytes));   // in the lane's order
//   HOLDFAST_RETURN_IF_ERROR(graph->Replay());            // reads `input`, not the slot
#ifndef HOLDFAST_GRAPHS_STAGING_RING_H_
#define HOLDFAST_GRAPHS_STAGING_RING_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graphs/lane.h"

namespace holdfast {

// Belongs to one thread at a time, as its lane does.
class StagingRing {
 public:
  // `slots` >= 1 host spans "<name>.<i>" of `bytes` each, owned by the lane's arena. The lane must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<StagingRing>> Create(Lane& lane, const std::string& name,
                                                             std::uint64_t bytes, int slots);

  // A slot that nothing reads; waits for its last copy. The same one until it is sent.
  // kDeadlineExceeded leaves everything as it was.
  absl::StatusOr<std::byte*> Acquire(std::chrono::steady_clock::time_point deadline =
                                         std::chrono::steady_clock::time_point::max());
  // Enqueues the copy of the acquired slot's first `bytes` to `to`, on the lane's stream, and hands
  // the slot back. kInvalidArgument (nothing acquired, or more than the slot holds); kBusy, kAsleep
  // and kUndefinedContents as for a replay, and the slot stays acquired.
  absl::Status Send(DeviceAddress to, std::uint64_t bytes);

 private:
  struct Slot {
    const HostSpan* span = nullptr;
    std::unique_ptr<Event> copied;
  };

  explicit StagingRing(Lane& lane) : lane_(lane) {}

  Lane& lane_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  bool acquired_ = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_STAGING_RING_H_
