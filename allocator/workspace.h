// The workspace: scratch that many users share, one slot per (micro-batch, lane), addressed by
// request and never kept between calls.
//
//   WorkspaceOptions options{.lanes = 2, .micro_batches = 2, .extent_bytes = 4 * kGiB};
//   groups += *WorkspaceManager::Groups(options);            // of the arena, before it is made
//   auto workspace = *WorkspaceManager::Create(*arena, options);
//   workspace->Reserve("mla_sparse", {{"q_concat", n}, {"context", m}});  // worst case; no memory
//   workspace->Commit();                                                  // pages behind all slots
//   auto lease = *workspace->Acquire({.lane = 1}, stream, "mla_sparse", {{"q_concat", k}});
//   ... lease.address(0) ...;  lease.Release();
//   workspace->Lock();                                                    // with graphs or without
//
// Each slot is a span ("lane0.mb1.workspace", scratch) whose address space is reserved for the
// largest need; pages are added in place, so its base never moves and no graph goes stale. All
// slots have the same bytes: they grow together and are locked together. What must be zero or lives
// longer than a call (counters) is a persistent resource: a `mutable` span of its own. Both are
// ordinary spans of one tag: sleep takes them, wake brings them back at their addresses.
//
// Scratch is one story. A slot is at the same time the span that a GraphSet captures its lane into:
//   - outside of steps, Acquire leases the slot from its base; one user at a time;
//   - inside a step, AcquireIn takes the same request, packed the same way, as one buffer of the
//     step's ScratchSession: measured, planned beside everything else that is alive, and asked for
//     again at capture. Overlaps are the planner's, so several leases may live together.
// What an engine has to do:
//   1. arena groups += Groups(options); Create after the arena. Other spans of the tag (input and
//      output blocks) are committed by name: CommitTag of it would commit whole extents.
//   2. Reserve each backend's declaration (runtime/declared_workspace.h), before Measure.
//   3. graphs.Measure(); Reserve("graphs lane0", {{"planned scratch", graphs.scratch_bytes()}}).
//   4. Commit(); graphs.WarmUp(CaptureSpan(slot), ...); graphs.Capture(CaptureSpan(slot)); Lock().
//   5. Report() for plan and ledger. Steps get the manager and the slot, and call AcquireIn.
// A capture locks the arena, and a locked arena counts as a locked workspace: capturing implies the
// lock.
//
// Environment: see workspace_override.h. Thread-safe; a slot's leases belong to its lane's thread.
#ifndef HOLDFAST_ALLOCATOR_WORKSPACE_H_
#define HOLDFAST_ALLOCATOR_WORKSPACE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/step_context.h"
#include "allocator/workspace_lease.h"
#include "allocator/workspace_override.h"
#include "allocator/workspace_report.h"
#include "allocator/workspace_request.h"
#include "device/bytes.h"
#include "device/device.h"
#include "device/dtype.h"

namespace holdfast {

#ifdef NDEBUG
inline constexpr bool kPoisonByDefault = false;
#else
inline constexpr bool kPoisonByDefault = true;
#endif

struct WorkspaceOptions {
  int lanes = 1;
  int micro_batches = 1;
  std::uint64_t extent_bytes = 0;  // address space of each slot: the most it may grow to
  std::uint64_t persistent_bytes = 64 * kKiB;  // address space of all persistent resources
  std::uint64_t chunk_bytes = 256 * kMiB;
  std::string tag = "workspace";
  // Lays 0xFF (NaN in every float type) under each lease at its begin. Outside of steps also at its
  // end, which waits for it, and the next lease looks whether it is still there (and waits).
  bool poison = kPoisonByDefault;
  WorkspaceOverride overrides;  // from ReadWorkspaceOverride
  SettingSink on_setting;       // told the values in effect, at Create and at Lock; may be null
};

// The part of the tag's mutable group that persistent resources lie in.
inline constexpr char kPersistentPart[] = "persistent";

struct PersistentSpec {
  std::string user;
  std::string key;  // unique in its slot
  DType type = DType::kU8;
  std::vector<std::int64_t> shape;  // every dimension > 0
};

struct PersistentResource {
  SpanId span;
  AddressRange range;  // exactly the elements
};

class WorkspaceManager {
 public:
  using Where = std::source_location;  // of the caller, for messages

  // What the arena must have for a manager of these options. kInvalidArgument naming the field: a
  // count below 1 or above 64, an extent of 0, an empty tag.
  static absl::StatusOr<std::vector<GroupSpec>> Groups(const WorkspaceOptions& options);
  // Reserves the spans of all slots; no pages. As Groups, kNotFound (the arena lacks a group),
  // kAlreadyExists (it has a manager already), kLocked; kOutOfExtent if the override is larger than
  // the extent. The arena must outlive it.
  static absl::StatusOr<std::unique_ptr<WorkspaceManager>> Create(Arena& arena,
                                                                  WorkspaceOptions options);
  WorkspaceManager(const WorkspaceManager&) = delete;
  WorkspaceManager& operator=(const WorkspaceManager&) = delete;

  // -- Before the lock

  // A user's worst case: one combined request. Touches no memory; the need of every slot becomes
  // the largest of all. Asked again, the user's larger need counts. kOutOfExtent (need, have)
  // beyond the extent or beyond an override that is not forced; kLocked if it is more than was
  // locked (naming user, need, have, the caller's file and line); kInvalidArgument. A refusal
  // changes nothing.
  absl::Status Reserve(const std::string& user, const std::vector<WorkspaceRequest>& requests,
                       const Where& where = Where::current());
  // Puts pages behind the need of all slots, or of none. As Arena::Commit.
  absl::Status Commit();
  // Commits, then nothing grows any more and no resource is added. A second lock is kLocked. On
  // failure it is not locked.
  absl::Status Lock();
  // By Lock, or because the arena is (a capture locks it).
  bool locked() const;

  // -- Scratch

  // One combined request at the base of the slot, for work on `stream`, the lane's. Before the lock
  // the slots grow to it, in place. kInvalidArgument (an unknown lane or micro-batch, or as
  // PackRequests), kBusy (another lease of the slot is alive: named), kAsleep, kLocked (needs more
  // than was locked) or kOutOfExtent as Reserve, kOutOfMemory; with poison kCorrupted, naming the
  // user before and the first leaf that was written to after the lease's end. Not while capturing.
  absl::StatusOr<WorkspaceLease> Acquire(WorkspaceSlot slot, Stream& stream,
                                         const std::string& user,
                                         const std::vector<WorkspaceRequest>& requests,
                                         const Where& where = Where::current());
  // The same inside a step that runs in this slot: asked of the step's scratch, measured or
  // planned. Nothing grows. kPlanMismatch as ScratchSession; kBusy if the slot is leased outside of
  // steps.
  absl::StatusOr<WorkspaceLease> AcquireIn(StepContext& step, WorkspaceSlot slot,
                                           const std::string& user,
                                           const std::vector<WorkspaceRequest>& requests,
                                           const Where& where = Where::current());
  // The slot's span, to be given to a GraphSet. From then on graphs write to the slot between
  // leases, so poison is laid but no longer looked at.
  absl::StatusOr<SpanId> CaptureSpan(WorkspaceSlot slot);

  // -- Persistent resources

  // Made and zeroed at the first call, the same ever after; nobody zeroes it again.
  // kInvalidArgument if type or shape are not those of the first call (both are named), kLocked if
  // it is missing and the workspace is locked, kOutOfExtent, kOutOfMemory, kAsleep.
  absl::StatusOr<PersistentResource> Persistent(WorkspaceSlot slot, const PersistentSpec& spec,
                                                const Where& where = Where::current());

  // -- Figures

  WorkspaceReport Report() const;
  std::uint64_t slot_bytes() const;  // of each slot: what a request may take
  int lanes() const { return options_.lanes; }
  int micro_batches() const { return options_.micro_batches; }
  std::vector<WorkspaceSlot> slots() const;
  Arena& arena() const { return arena_; }

 private:
  friend class WorkspaceLease;
  struct Slot {
    WorkspaceSlot id;
    SpanId span;
    AddressRange range;
    std::vector<std::shared_ptr<LeaseRecord>> leases;  // not over yet, or not yet seen to be
    bool captured = false;                             // graphs write to it, too
    std::uint64_t poisoned_bytes =
        0;  // from its base: nobody may have written since the last lease
    std::string last_user;
    std::uint64_t high_water_bytes = 0;
    std::string largest_user;
  };
  struct KeptResource {
    PersistentSpec spec;
    SpanId span;
    std::uint64_t bytes = 0;
  };

  WorkspaceManager(Arena& arena, WorkspaceOptions options)
      : arena_(arena), options_(std::move(options)) {}

  absl::Status ReserveSlots();
  void Tell(const char* name, std::uint64_t value, const char* origin) const;
  absl::StatusOr<Slot*> Find(WorkspaceSlot slot);

  // All with mutex_ held.
  bool LockedNow() const { return locked_ || arena_.locked(); }
  // OK if a slot holds the request now or may grow to it.
  absl::Status CheckFits(const std::string& user, const PackedRequests& packed, bool reserving,
                         const Where& where) const;
  absl::Status GrowTo(std::uint64_t bytes);
  absl::Status CheckFree(Slot& slot, bool planned, const std::string& user);
  // What Acquire does once the request is known to be well-formed.
  absl::StatusOr<WorkspaceLease> TakeSlot(Slot& slot, Stream& stream, const std::string& user,
                                          const PackedRequests& packed, const Where& where);
  absl::StatusOr<WorkspaceLease> TakePlanned(Slot& slot, StepContext& step, const std::string& user,
                                             const PackedRequests& packed, const Where& where);
  absl::Status PreparePoison(Slot& slot, Stream& stream, std::uint64_t bytes);
  std::shared_ptr<LeaseRecord> MakeRecord(Slot& slot, const std::string& user,
                                          const PackedRequests& packed, DeviceAddress base,
                                          bool planned);
  absl::StatusOr<WorkspaceLease> Count(Slot& slot, const std::string& user,
                                       const PackedRequests& packed,
                                       absl::StatusOr<WorkspaceLease> lease);
  absl::StatusOr<KeptResource*> FindOrReserve(Slot& slot, const PersistentSpec& spec,
                                              std::uint64_t bytes, const Where& where);

  absl::Status EndLease(const LeaseRecord& record, Stream* stream);

  Arena& arena_;
  const WorkspaceOptions options_;
  mutable std::mutex mutex_;  // guards all below
  bool locked_ = false;
  std::uint64_t bytes_ = 0;  // of each slot
  std::uint64_t generations_ = 0;
  std::vector<Slot> slots_;  // by micro-batch, then lane; their number, ids and spans are fixed
  std::map<std::string, DeclaredUse> declared_;
  std::map<std::pair<std::string, WorkspaceSlot>, MeasuredUse> measured_;
  std::map<std::pair<WorkspaceSlot, std::string>, KeptResource> persistent_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_WORKSPACE_H_
