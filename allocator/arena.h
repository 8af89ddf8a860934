// The arena: one window of fixed addresses on one device, divided into groups (tag x role), holding
// spans.
//
//   auto arena = Arena::Create(device, {.groups = {{"weights", Role::kImmutable, 64 * kMiB},
//   ...}}); auto w = (*arena)->Reserve({.name = "w", .tag = "weights", .role = Role::kImmutable,
//   .bytes = n});
//   (*arena)->Commit(*w);               // pages behind it
//   (*arena)->Lock();                   // from here nothing is added or moved
//
// Addresses never change: not by commit, sleep, wake, nor by any failure of those. Thread rules:
// Reserve, Commit, Seal, Lock and transitions are serialised by the arena; readers may run beside
// them.
#ifndef HOLDFAST_ALLOCATOR_ARENA_H_
#define HOLDFAST_ALLOCATOR_ARENA_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/admission_gate.h"
#include "allocator/registrations.h"
#include "allocator/span.h"
#include "device/bytes.h"
#include "device/device.h"

namespace holdfast {

struct GroupSpec {
  std::string tag;
  Role role = Role::kMutable;
  std::uint64_t extent_bytes = 0;  // address space: the most its spans may take together
  // Largest physical allocation; rounded up to the granularity.
  std::uint64_t chunk_bytes = 256 * kMiB;
  // Its spans all have a refill hook (immutable or mutable contents that are dropped); means
  // nothing for cache and scratch.
  bool refilled = false;
  bool shareable = false;  // its chunks can be exported to other processes
  // Groups of one tag and role that are committed each by itself: spans name the part they want.
  std::string part = {};
};

struct ArenaOptions {
  std::string name = "arena";
  std::vector<GroupSpec> groups;  // (tag, role, refilled, part) is unique
  // Tried in order before the device's own choice; empty means the built-in list (design: an odd
  // high half, so that no pair of small integers looks like a pointer).
  std::vector<DeviceAddress> candidate_bases;
};

// One physical piece of a group. Awake: held and mapped. Asleep: neither, except for a piece that
// could not be given back when a failed transition was undone; it stays recorded here, and the next
// transition (or the arena's end) takes it up again, so that nothing leaks.
struct ArenaChunk {
  AddressRange range;
  ChunkHandle chunk;       // 0: no physical memory
  bool shareable = false;  // how its physical memory is made
  bool mapped = false;
  bool lost = false;  // its contents are gone: to be restored before the group counts as awake
};

// A group as residency and the ledger see it.
struct ArenaGroup {
  GroupSpec spec;
  AddressRange extent;
  std::uint64_t reserved_bytes = 0;   // end of the last span, from extent.base
  std::uint64_t committed_bytes = 0;  // pages exist (or come back at wake) below this offset
  bool sealed = false;                // mapped read-only while resident
  // Changes whenever a seal stops proving that contents are as they were: unsealed, or somebody
  // else may write. A backup taken at another count has to be compared again.
  std::uint64_t writable_epoch = 0;
  bool asleep = false;
  std::vector<ArenaChunk> chunks;  // in address order, covering [0, committed_bytes)

  bool dropped() const {
    return spec.role == Role::kCache || spec.role == Role::kScratch || spec.refilled;
  }
};

// A span as far as its contents are concerned.
struct SpanContents {
  SpanId id;
  AddressRange range;
  WakeContents wake_contents = WakeContents::kZero;
  bool refilled = false;  // it has a refill hook
};

struct SpanHit {
  SpanId span;
  std::uint64_t offset = 0;  // == span bytes for a one-past-the-end pointer
};

// Pinned host memory that graphs copy from or to: owned by the arena, audited, alive as long as it.
struct HostSpan {
  std::string name;
  HostBuffer buffer;
};

struct TagBytes {
  std::string tag;
  Role role;
  std::uint64_t spans = 0;            // how many
  std::uint64_t logical_bytes = 0;    // their sum, unrounded
  std::uint64_t backed_bytes = 0;     // the part of it that has pages now
  std::uint64_t committed_bytes = 0;  // pages they have when awake
  std::uint64_t resident_bytes = 0;   // pages they have now
};

// The first bytes of a span.
struct SpanPrefix {
  SpanId span;
  std::uint64_t bytes = 0;
};

class Arena {
 public:
  // Reserves the window (sum of the extents) at the first free candidate. The device must outlive
  // it. kInvalidArgument, kAddressTaken (names the size).
  static absl::StatusOr<std::unique_ptr<Arena>> Create(Device& device, ArenaOptions options);
  // Unmaps and releases everything. Work that uses it must be done.
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Fixes a span's address; no pages yet. kAlreadyExists, kNotFound (no such group), kOutOfExtent
  // (need, have), kLocked, kInvalidArgument. On failure nothing changes.
  absl::StatusOr<SpanId> Reserve(SpanSpec spec);
  // Puts pages behind the first `bytes` of a span (all of it by default) and behind every span
  // before it in its group. Already committed: OK, nothing done. Legal after the lock. New pages
  // read as zero. On failure no page of this call stays. kOutOfMemory, kAsleep, kLocked (the group
  // is sealed), kInvalidArgument (no such span, or more than its bytes).
  absl::Status Commit(SpanId span, std::uint64_t bytes = UINT64_MAX);
  // The same for several, or none of them.
  absl::Status CommitTogether(const std::vector<SpanPrefix>& prefixes);
  // Commits every span reserved so far in every group of the tag, or none of them.
  absl::Status CommitTag(const std::string& tag);
  // The opposite of Commit: gives the chunks back that lie wholly behind the first `keep_bytes` of
  // a span, and the bytes they had. Nothing moves, and what is kept is untouched; a chunk is never
  // cut, so committed_bytes() may stay above `keep_bytes`. Legal after the lock. Waits for admitted
  // work and the gate's streams (kDeadlineExceeded: nothing changed). kInvalidArgument (no such
  // span, or fewer than `keep_bytes`), kAsleep, kLocked (the group is sealed), kBusy, kHeld (a
  // later span has some of these pages, or somebody has registered this one: named). A driver that
  // fails to take pages back is an error as for Free.
  absl::StatusOr<std::uint64_t> Uncommit(SpanId span, std::uint64_t keep_bytes,
                                         AdmissionGate::Deadline deadline);
  // Maps the immutable groups of the tag read-only. Writers fault from now on; the caller has
  // waited for those it started. All their spans must be committed; afterwards nothing is added to
  // them. Idempotent. kNotFound (no immutable group), kAsleep, kInvalidArgument (a span is not
  // committed). On failure they stay writable.
  absl::Status Seal(const std::string& tag);
  // Maps the sealed groups of the tag writable again, so that they can be rewritten; the next sleep
  // moves the leaves that changed. Idempotent. kNotFound, kAsleep. On failure they stay sealed.
  absl::Status Unseal(const std::string& tag);
  // Gives a span up: waits for admitted work and the gate's streams (kDeadlineExceeded: nothing
  // changed), then the name is free, graphs that refer to it refuse (kNotFound), and the whole
  // chunks behind the group's last span go back to the device. Its addresses are not given to
  // another span. kAsleep, kLocked (the arena is locked), kHeld (names who registered it),
  // kInvalidArgument (no such span), kBusy. A driver that fails to take pages back is an error,
  // too; the span is freed then, and the next Commit, Free or the arena's end tries again.
  absl::Status Free(SpanId span, AdmissionGate::Deadline deadline);
  // No span is added from here on. Idempotent.
  void Lock() { locked_.store(true); }
  bool locked() const { return locked_.load(); }

  // Registers pinned host memory under a unique name; the arena owns it from here.
  absl::StatusOr<const HostSpan*> AddHostSpan(std::string name, std::uint64_t bytes);

  Device& device() const { return device_; }
  const std::string& name() const { return name_; }
  AddressRange window() const { return window_; }
  // The candidate that was taken: its index, or -1 for the device's own choice.
  int base_candidate() const { return base_candidate_; }
  AdmissionGate& gate() { return gate_; }
  Registrations& registrations() { return registrations_; }
  const Registrations& registrations() const { return registrations_; }

  // What is known of a span; nothing (no name, an empty range) of one that never was or was freed.
  SpanInfo span(SpanId id) const;
  AddressRange range(SpanId id) const;
  std::optional<SpanId> Find(const std::string& name) const;
  std::vector<SpanInfo> spans() const;            // by SpanId::index, freed ones included
  std::vector<AddressRange> span_ranges() const;  // [SpanId::index]
  // How many of the span's first bytes have pages when its tag is awake.
  std::uint64_t committed_bytes(SpanId id) const;
  // The span an address points into (or just past the end of); nullopt outside all spans.
  std::optional<SpanHit> Locate(DeviceAddress address) const;
  std::vector<const HostSpan*> host_spans() const;
  // The host span an address points into (or past the end of); null if none.
  const HostSpan* LocateHost(std::uint64_t address) const;
  std::vector<TagBytes> bytes_by_tag() const;
  bool HasTag(const std::string& tag) const;
  // True if any group of the tag is asleep. Never waits for a transition.
  bool asleep(const std::string& tag) const;
  std::vector<std::string> tags() const;

  // Changes with every transition that committed. A graph replays only if its tags were checked at
  // the current epoch.
  std::uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  // How many spans were given up: a graph looks for its own when that has moved.
  std::uint64_t frees() const { return frees_.load(std::memory_order_acquire); }
  // OK if every tag is resident and no span of it has undefined contents; else kAsleep or
  // kUndefinedContents naming the tag or span, or kNotFound.
  absl::Status CheckReady(const std::vector<std::string>& tags) const;
  // OK if [offset, offset + bytes) of the span has pages now. kInvalidArgument (no such span, or
  // not inside it, or not committed: need, have), kAsleep; to be read, also kUndefinedContents.
  absl::Status CheckAccessible(SpanId id, std::uint64_t offset, std::uint64_t bytes,
                               bool read) const;

  // -- For residency only

  // One transition at a time holds this; the others wait their turn. Refill hooks run under it.
  std::mutex& transition_mutex() { return transition_mutex_; }
  std::vector<ArenaGroup>& groups() { return groups_; }  // under transition_mutex()
  void BumpEpoch() { epoch_.fetch_add(1, std::memory_order_acq_rel); }
  // The spans of a group, in address order.
  std::vector<SpanContents> ContentsOf(std::size_t group) const;
  // The device keeps its local memory as long as any arena holds it; each does from its making,
  // except while all of it is asleep. Idempotent; with transition_mutex() held.
  absl::Status HoldLocalMemory();
  absl::Status DropLocalMemory();
  // Marks a dropped span's contents (un)defined.
  void SetUndefined(SpanId id, bool undefined);
  // Records a group's new state for readers; call with transition_mutex() held.
  void PublishAsleep(std::size_t group, bool asleep);

 private:
  Arena(Device& device, std::string name) : device_(device), name_(std::move(name)) {}

  // The group a span of this spec belongs to; npos if there is none.
  std::size_t FindGroup(const SpanSpec& spec) const;
  absl::Status CheckSpec(const SpanSpec& spec) const;
  // Extends the committed prefix of a group to `end` bytes. On failure no page of this call stays.
  // With transition_mutex_ held, as for the three below.
  absl::Status ExtendGroup(std::size_t group, std::uint64_t end);
  absl::Status MakeZeroedPages(std::vector<ArenaChunk>& chunks);
  // Takes back the committed pages above `committed_bytes`; what cannot be removed becomes an
  // orphan.
  void ShrinkGroup(std::size_t group, std::size_t chunks, std::uint64_t committed_bytes);
  absl::Status RemoveOrphans();
  // Where the first `bytes` of a span end, counted from its group's extent. kInvalidArgument.
  struct GroupEnd {
    std::size_t group = 0;
    std::uint64_t end = 0;
  };
  absl::StatusOr<GroupEnd> EndOf(const SpanPrefix& prefix) const;
  // Extends each group to its end, or none.
  absl::Status ExtendGroups(const std::vector<GroupEnd>& ends);
  // Where the first chunk of the group begins that lies wholly behind `end`, or the committed end.
  std::uint64_t FirstChunkFrom(std::size_t group, std::uint64_t end) const;
  // kHeld if another span has some of these pages, or if somebody has registered `span`.
  absl::Status CheckAlone(SpanId span, AddressRange pages) const;
  // Gives back the chunks that lie wholly behind `end`; the bytes they had.
  std::uint64_t ShrinkGroupTo(std::size_t group, std::uint64_t end);
  // Takes the span out of all books.
  void ForgetSpan(SpanId id);
  // The last live span's end in the group, from extent.base.
  std::uint64_t LiveEnd(std::size_t group) const;
  // The (un)sealed immutable groups of a tag. kNotFound if it has no immutable group, kAsleep.
  absl::StatusOr<std::vector<ArenaGroup*>> ImmutableGroups(const std::string& tag, bool sealed);

  Device& device_;
  std::string name_;
  AddressRange window_;
  int base_candidate_ = -1;
  std::atomic<bool> locked_{false};
  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<std::uint64_t> frees_{0};
  AdmissionGate gate_;
  Registrations registrations_;

  // std::mutex, not absl::Mutex: a distribution's absl is not built with the thread sanitizer,
  // which then cannot see what absl::Mutex orders.
  std::mutex transition_mutex_;  // taken before mutex_
  std::vector<ArenaGroup>
      groups_;  // vector, specs and extents fixed after Create; the rest under it
  std::vector<ArenaChunk>
      orphans_;  // pages of a failed commit that could not be removed yet; under it
  std::unique_ptr<Stream> stream_;   // zeroes new pages; under it
  bool holds_local_memory_ = false;  // under it

  mutable std::mutex mutex_;  // guards all below: names and readers' state
  std::vector<SpanInfo> spans_;
  std::vector<std::size_t> span_group_;
  std::vector<bool> undefined_;                    // by span
  std::vector<std::uint64_t> undefined_in_group_;  // how many spans of a group are undefined
  std::vector<bool> group_asleep_;
  std::vector<std::uint64_t> group_committed_;
  std::map<std::string, SpanId> by_name_;
  std::map<std::uint64_t, SpanId> by_address_;
  std::vector<std::unique_ptr<HostSpan>> host_spans_;
  std::map<std::uint64_t, const HostSpan*> host_by_address_;
};

// How a step sees the arena while it is captured: it resolves spans through this and stores no
// pointer, so that the same step can be captured at another base.
class ArenaView {
 public:
  explicit ArenaView(const Arena& arena, std::uint64_t shift = 0) : arena_(&arena), shift_(shift) {}
  DeviceAddress Resolve(SpanId id) const { return arena_->range(id).base + shift_; }
  std::uint64_t shift() const { return shift_; }

 private:
  const Arena* arena_;
  std::uint64_t shift_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_ARENA_H_
