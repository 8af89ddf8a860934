// Sleep and wake: the only code that takes pages out from under an arena and puts them back.
//
// Sleep(tags): budget, close the gate and drain, copy out what is kept, unmap, release. Wake(tags):
// create, map, copy in, verify by hash, refill, lower sealed groups to read-only, bump the epoch.
// The gate is closed while pages go. It stays open during wake: nobody is admitted to a tag that is
// not published as awake (kAsleep), and graphs of other tags replay on.
//
// Both are all or nothing: any failure leaves the state before the call (addresses, kept bytes,
// residency), leaks nothing, and may be retried. Both are idempotent and safe from any thread; a
// second transition waits its turn.
//
// Two failures cannot be undone whole, and say so: a release that fails after others succeeded
// brings the dropped contents back as their WakeContents say (kept contents from their backup); and
// when the undoing itself fails, the tags end asleep with their backups complete, so that Wake can
// be tried again. Physical pieces that could not even be removed then stay recorded: the next Wake
// uses them, the next Sleep or the arena's end gives them back.
//
// Kept groups are copied at every sleep, but for sealed ones: their backup stays valid from the
// first sleep on. Immutable groups that are not sealed count as mutable. One Residency an arena:
// backups are its own.
#ifndef HOLDFAST_ALLOCATOR_RESIDENCY_H_
#define HOLDFAST_ALLOCATOR_RESIDENCY_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/backing.h"

namespace holdfast {

struct ResidencyOptions {
  std::uint64_t host_cap_bytes =
      UINT64_MAX;      // most pinned host memory the backups may take together
  bool verify = true;  // hash what is kept at sleep and again at wake
};

// Planted by negative controls; never set otherwise.
struct ResidencyFaults {
  bool swap_chunks =
      false;  // wake exchanges two kept pieces of equal size and different contents: two
              // chunks, else two leaves of one; kInvalidArgument if all are equal
  bool flip_bit = false;     // one bit of the first kept chunk's backup flips while asleep (once)
  bool skip_refill = false;  // refill hooks are not called, yet the spans count as defined
  bool unmap_early = false;  // sleep unmaps without waiting for running work
};

struct TagTransition {
  std::string tag;
  std::uint64_t kept_bytes = 0;     // copied out, or in
  std::uint64_t clean_bytes = 0;    // kept without a copy: the backup was still valid
  std::uint64_t dropped_bytes = 0;  // given up, or brought back without contents
};

struct TransitionReport {
  std::vector<TagTransition> tags;  // those that changed; empty for a no-op
  std::uint64_t freed_bytes = 0;    // sleep: physical bytes released. wake: taken
  std::uint64_t backing_bytes = 0;  // pinned host memory held after the call
  double seconds = 0;
  std::map<std::string, double> seconds_by_stage;  // "drain", "copy", "hash", "unmap", ...
};

struct Transition;  // allocator/transition.h

class Residency {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // The arena must outlive it. Destroy it only when nothing is asleep whose contents are wanted.
  static absl::StatusOr<std::unique_ptr<Residency>> Create(Arena& arena,
                                                           ResidencyOptions options = {});
  ~Residency();

  // Tags already asleep are left as they are. kNotFound, kInvalidArgument (empty or repeated tags),
  // kOutOfHostMemory (need, have: nothing moved), kDeadlineExceeded (work still running: nothing
  // changed).
  absl::StatusOr<TransitionReport> Sleep(const std::vector<std::string>& tags, Deadline deadline);
  // Tags already awake are left as they are. kOutOfMemory (need, have), kCorrupted or kMisplaced
  // (name the span and leaf whose bytes changed; backups stay), kDriver. Wake returns with
  // everything done.
  absl::StatusOr<TransitionReport> Wake(const std::vector<std::string>& tags);

  // True if any group of the tag is asleep. Never waits for a transition.
  bool asleep(const std::string& tag) const;
  std::uint64_t backing_bytes() const;

  // Hashes of all resident kept groups, by "tag/role" and leaf, taken now (drains nothing: the
  // caller knows that nobody writes).
  absl::StatusOr<std::map<std::string, std::vector<Hash128>>> HashKept();

  void PlantFaults(const ResidencyFaults& faults);

 private:
  Residency(Arena& arena, ResidencyOptions options);
  // A transition over those groups of the tags that are asleep (or awake).
  Transition Begin(const std::vector<std::string>& tags, bool asleep);

  Arena& arena_;
  ResidencyOptions options_;
  ResidencyFaults faults_;          // this and all below: under Arena::transition_mutex()
  std::unique_ptr<Stream> stream_;  // copies and hashes
  HostBuffer hash_room_;            // pinned; reused
  std::unique_ptr<Backing> backing_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_RESIDENCY_H_
