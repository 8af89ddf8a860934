// One arena's part of a transition: which groups move, and what every step of it needs. A sleep or
// a wake has a vector of these, one an arena; usually one. Private to allocator/. All of it wants
// Arena::transition_mutex() held.
#ifndef HOLDFAST_ALLOCATOR_TRANSITION_H_
#define HOLDFAST_ALLOCATOR_TRANSITION_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/backup.h"
#include "allocator/registrations.h"
#include "allocator/residency.h"
#include "allocator/residency_state.h"
#include "allocator/stage_clock.h"

namespace holdfast {

// A hook of a holder that was called in this transition, for the way back.
struct CalledHolder {
  std::shared_ptr<const Registration> registration;
  SpanId span;
};

// One chunk of a kept group that takes part.
struct KeptChunk {
  std::size_t group = 0, chunk = 0;  // indices
  AddressRange kept;                 // its part with contents
  std::size_t first_leaf = 0;        // where its hashes go in ResidencyState::leaf_hashes()
  std::optional<SealStamp> seal;     // of its group; nullopt while somebody may write
};

struct Transition {
  ResidencyState& state;
  StageClock& clock;              // one for all arenas
  std::vector<std::string> tags;  // in the order given
  ResidencyFaults faults;
  std::vector<std::size_t> groups;   // still to change: indices into arena.groups()
  std::vector<CalledHolder> called;  // in the order of the calls

  Arena& arena() const { return state.arena; }
  Device& device() const { return state.device(); }
  ArenaGroup& group(std::size_t index) const { return state.arena.groups()[index]; }
  ArenaChunk& chunk(const KeptChunk& kept) const { return group(kept.group).chunks[kept.chunk]; }
  Backup* backup(const KeptChunk& kept) const { return FindBackup(state.backups, kept.kept); }
  Hash128* hashes_of(const KeptChunk& kept) const { return state.leaf_hashes() + kept.first_leaf; }
};

using Transitions = std::vector<Transition>;

// kInvalidArgument for an empty list or a tag twice, kNotFound for an unknown one.
absl::Status CheckTags(const Arena& arena, const std::vector<std::string>& tags);
// The groups of the tags that are asleep (or awake), in the order of the tags.
std::vector<std::size_t> SelectGroups(Arena& arena, const std::vector<std::string>& tags,
                                      bool asleep);
// The chunks of kept groups among `groups` that have contents, in that order.
std::vector<KeptChunk> KeptChunksOf(Arena& arena, const std::vector<std::size_t>& groups);

// Holds every arena's transition mutex, taken in one order everywhere. kInvalidArgument for none,
// or for one twice.
absl::StatusOr<std::vector<std::unique_lock<std::mutex>>> LockArenas(
    const std::vector<ResidencyState*>& states);

bool AnyLost(const ArenaGroup& group);
// The backup holds the contents already, because nobody could have changed them.
bool IsClean(const Transition& t, const KeptChunk& kept);

// Waits until none of our own work runs any more.
void SettleStreams(Transition& t);

// The row of a report that belongs to a tag; made if there is none.
TagTransition& RowOf(TransitionReport& report, const std::string& tag);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_TRANSITION_H_
