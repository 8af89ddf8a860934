// Sleep and wake: the only code that takes pages out from under an arena and puts them back.
//
// Sleep(tags): judge the budget and the holders, close the gate and drain, copy out what is kept
// and changed, unmap, release. Wake(tags): per chunk create, map, copy in, verify by hash, lower to
// read-only, each stage beside the next chunk's; refill; bump the epoch. The gate is closed while
// pages go. It stays open during wake: nobody is admitted to a tag that is not published as awake
// (kAsleep), and graphs of other tags replay on.
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
// What is copied at sleep: a sealed chunk whose backup was taken under this seal, nothing; any
// other chunk, the leaves whose hash differs from the backup's (all of them the first time, or
// without detect_unchanged). One Residency an arena: backups are its own.
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
#include "allocator/backing_pool.h"

namespace holdfast {

struct ResidencyOptions {
  // Where backups live; shared with other arenas of the device if given, else one of its own.
  std::shared_ptr<BackingPool> pool;
  std::uint64_t host_cap_bytes = UINT64_MAX;  // of its own pool; unused with a shared one
  bool verify = true;                         // compare hashes at wake
  bool detect_unchanged = true;  // compare hashes at sleep: only changed leaves are copied
};

// Planted by negative controls; never set otherwise.
struct ResidencyFaults {
  bool swap_chunks =
      false;  // wake exchanges two kept pieces of equal size and different contents: two
              // chunks, else two leaves of one; kInvalidArgument if all are equal
  bool flip_bit = false;      // one bit of the first kept chunk's backup flips while asleep (once)
  bool skip_refill = false;   // refill hooks are not called, yet the spans count as defined
  bool unmap_early = false;   // sleep unmaps without waiting for running work
  bool trust_stale = false;   // sleep takes every backup for clean, whatever changed
  bool skip_holders = false;  // holders' hooks are not called
};

struct TagTransition {
  std::string tag;
  std::uint64_t kept_bytes = 0;     // copied out, or in
  std::uint64_t clean_bytes = 0;    // kept without a copy: the backup held them already
  std::uint64_t dropped_bytes = 0;  // given up, or brought back without contents
};

struct TransitionReport {
  std::vector<TagTransition> tags;   // those that changed; empty for a no-op
  std::uint64_t freed_bytes = 0;     // sleep: physical bytes released. wake: taken
  std::uint64_t backing_bytes = 0;   // host memory held after the call
  std::uint64_t pageable_bytes = 0;  // of it, not pinned (chosen by the pool's options)
  std::uint64_t attempts = 1;        // wake: how often it was tried, waiting for device memory
  double seconds = 0;                // wall clock of the whole call
  // Where the calling thread spent it: "prepare", "drain", "copy", "hash", "unmap", ... Stages that
  // ran beside others count where they were waited for.
  std::map<std::string, double> seconds_by_stage;
};

struct WakeOptions {
  // Tries again, backing off, while another process still holds the device memory that is needed.
  std::chrono::steady_clock::time_point memory_deadline{};
  // A tag counts as awake as soon as it is whole, in the order given; a later failure then leaves
  // it awake and takes back only the others. Otherwise all or none.
  bool publish_each_tag = false;
};

// Where the backup of a piece of a span lies, for a loader that writes contents there first.
struct StagedPiece {
  AddressRange device;
  std::byte* host = nullptr;  // device.bytes bytes, pinned
};

class Residency;

// One arena's share of a transition over several.
struct ArenaTags {
  Residency* residency = nullptr;
  std::vector<std::string> tags;
};

struct ResidencyState;  // allocator/residency_state.h

class Residency {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // The arena must outlive it. Destroy it only when nothing is asleep whose contents are wanted.
  static absl::StatusOr<std::unique_ptr<Residency>> Create(Arena& arena,
                                                           ResidencyOptions options = {});
  ~Residency();

  // Tags already asleep are left as they are. kNotFound, kInvalidArgument (empty or repeated tags),
  // kOutOfHostMemory (need, have: nothing moved), kHeld (names a holder without hooks: nothing
  // moved), kDeadlineExceeded (work still running: nothing changed).
  absl::StatusOr<TransitionReport> Sleep(const std::vector<std::string>& tags, Deadline deadline);
  // Tags already awake are left as they are; tags come in the order given, kept contents first.
  // kOutOfMemory (need, have), kCorrupted or kMisplaced (name the span and leaf whose bytes
  // changed; backups stay), kDriver. Wake returns with everything done.
  absl::StatusOr<TransitionReport> Wake(const std::vector<std::string>& tags,
                                        const WakeOptions& options = {});

  // True if any group of the tag is asleep. Never waits for a transition.
  bool asleep(const std::string& tag) const;
  // Waits until the tag is awake. kDeadlineExceeded; or, once the transition that was to bring it
  // has failed, its error; kNotFound.
  absl::Status WaitAwake(const std::string& tag, Deadline deadline) const;
  // Waits until the contents of the span are back and verified, which may be long before its tag is
  // awake: they may be read; graphs still wait for the tag. As WaitAwake.
  absl::Status WaitSpan(SpanId span, Deadline deadline) const;

  // -- Host memory ahead of time

  // Makes the backups that a sleep of these tags would need, so that it does not have to. Exact
  // sizes; serving goes on meanwhile. As Sleep for host memory.
  absl::Status Prepare(const std::vector<std::string>& tags);
  // The same beside the caller; the next Sleep or Prepare takes what there is, and the error.
  absl::Status PrepareInBackground(const std::vector<std::string>& tags);
  // Gives back what holds no contents: prepared rooms, idle pool buffers. Backups of awake tags go
  // only if `forget_clean`: their next sleep copies again. Returns the bytes.
  std::uint64_t TrimHost(bool forget_clean);
  std::uint64_t backing_bytes() const;

  // -- Loading through the pool

  // The rooms behind a committed, resident span of a kept group, in address order. The loader
  // writes the contents there and copies them to the device from there.
  absl::StatusOr<std::vector<StagedPiece>> Stage(SpanId span);
  // Once all spans of the tag are loaded (and sealed, if they are to be): the rooms are taken as
  // backups, so that the first sleep copies nothing. Compares device and host by hash first
  // (kCorrupted naming the span: the rooms are then no backups). Groups never staged are left out.
  absl::Status AdoptStaged(const std::string& tag);

  // Hashes of all resident kept groups, by "tag/role" and leaf, taken now (drains nothing: the
  // caller knows that nobody writes).
  absl::StatusOr<std::map<std::string, std::vector<Hash128>>> HashKept();

  void PlantFaults(const ResidencyFaults& faults);

 private:
  friend class JointTransition;  // allocator/joint_transition.h
  explicit Residency(std::unique_ptr<ResidencyState> state);
  std::unique_ptr<ResidencyState> state_;
};

// One transition over several arenas: all of them change, or none. Reports in the order given.
// kInvalidArgument for an arena given twice. Arenas may lie on different devices.
absl::StatusOr<std::vector<TransitionReport>> SleepTogether(const std::vector<ArenaTags>& arenas,
                                                            Residency::Deadline deadline);
absl::StatusOr<std::vector<TransitionReport>> WakeTogether(const std::vector<ArenaTags>& arenas,
                                                           const WakeOptions& options = {});

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_RESIDENCY_H_
