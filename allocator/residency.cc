#include "allocator/residency.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/arena_layout.h"
#include "allocator/group_pages.h"
#include "allocator/transition.h"
#include "device/error.h"

namespace holdfast {
namespace {

// Keeps the gate closed from a successful close to the end of the transition, whatever its result.
class ReopenAtEnd {
 public:
  explicit ReopenAtEnd(AdmissionGate& gate) : gate_(gate) {}
  ~ReopenAtEnd() { gate_.Reopen(); }
  ReopenAtEnd(const ReopenAtEnd&) = delete;
  ReopenAtEnd& operator=(const ReopenAtEnd&) = delete;

 private:
  AdmissionGate& gate_;
};

TagTransition& RowOf(TransitionReport& report, const std::string& tag) {
  for (TagTransition& row : report.tags) {
    if (row.tag == tag) return row;
  }
  report.tags.push_back({.tag = tag});
  return report.tags.back();
}

// Bytes by tag. Taken before the transition changes anything: what is clean is known only then.
TransitionReport Summarise(Transition& t) {
  TransitionReport report;
  for (const std::size_t g : t.groups) {
    const ArenaGroup& group = t.group(g);
    TagTransition& row = RowOf(report, group.spec.tag);
    for (const ArenaChunk& chunk : group.chunks) {
      const std::uint64_t bytes = chunk.range.bytes;
      report.freed_bytes += bytes;
      if (group.dropped()) {
        row.dropped_bytes += bytes;
      } else if (!group.asleep && IsClean(group, t.backing.Find(chunk.range.base))) {
        row.clean_bytes += bytes;
      } else {
        row.kept_bytes += bytes;
      }
    }
  }
  return report;
}

void FinishReport(Transition& t, TransitionReport& report) {
  t.clock.End();
  report.backing_bytes = t.backing.held_bytes();
  report.seconds_by_stage = t.clock.seconds();
  for (const auto& [stage, seconds] : report.seconds_by_stage) report.seconds += seconds;
}

void Publish(Transition& t, bool asleep) {
  for (const std::size_t g : t.groups) t.arena.PublishAsleep(g, asleep);
  t.arena.BumpEpoch();
}

// Back to the state before a sleep whose pages had begun to go. Returns the error that the sleep
// ends with.
absl::Status UndoSleep(Transition& t, const absl::Status& cause) {
  const bool any_lost = std::any_of(t.groups.begin(), t.groups.end(),
                                    [&](std::size_t g) { return AnyLost(t.group(g)); });
  t.faults = {};
  const absl::Status undone = BringBack(t);
  if (undone.ok()) {
    ForgetMutableBackups(t);
    // Undefined spans may have come of it: graphs have to look again.
    if (any_lost) t.arena.BumpEpoch();
    return cause;
  }
  RemoveAll(t);
  Publish(t, /*asleep=*/true);
  return Annotate(cause,
                  absl::StrCat("sleep could neither finish nor be undone (", undone.ToString(),
                               "); the tags are asleep, their backups "
                               "complete"));
}

// A quick refusal, before a single page is made.
absl::Status CheckFreeMemory(Transition& t, const std::vector<std::string>& tags) {
  std::uint64_t need = 0;
  for (const std::size_t g : t.groups) {
    for (const ArenaChunk& chunk : t.group(g).chunks) need += chunk.chunk ? 0 : chunk.range.bytes;
  }
  const absl::StatusOr<MemoryUse> memory = t.device().Memory();
  if (!memory.ok() || memory->free_bytes >= need) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kOutOfMemory,
                    .object = absl::StrJoin(tags, ","),
                    .need = need,
                    .have = memory->free_bytes},
                   "not enough device memory to wake");
}

// The fault: one bit of the first kept chunk's backup. Once: a second flip would repair the first.
void PlantFlippedBit(Transition& t, ResidencyFaults& faults) {
  for (const std::size_t g : t.groups) {
    const ArenaGroup& group = t.group(g);
    if (group.dropped() || group.chunks.empty()) continue;
    Backup* backup = t.backing.Find(group.chunks.front().range.base);
    if (backup == nullptr) continue;
    backup->bytes.data()[0] ^= std::byte{1};
    faults.flip_bit = false;
    return;
  }
}

}  // namespace

Residency::Residency(Arena& arena, ResidencyOptions options) : arena_(arena), options_(options) {}
Residency::~Residency() = default;

absl::StatusOr<std::unique_ptr<Residency>> Residency::Create(Arena& arena,
                                                             ResidencyOptions options) {
  auto residency = std::unique_ptr<Residency>(new Residency(arena, options));
  HOLDFAST_ASSIGN_OR_RETURN(residency->stream_,
                            arena.device().CreateStream(arena.name() + " residency"));
  residency->backing_ = std::make_unique<Backing>(arena.device(), options.host_cap_bytes);
  return residency;
}

Transition Residency::Begin(const std::vector<std::string>& tags, bool asleep) {
  return Transition{.arena = arena_,
                    .stream = *stream_,
                    .backing = *backing_,
                    .hashes = hash_room_,
                    .verify = options_.verify,
                    .faults = faults_,
                    .groups = SelectGroups(arena_, tags, asleep),
                    .clock = {}};
}

absl::StatusOr<TransitionReport> Residency::Sleep(const std::vector<std::string>& tags,
                                                  Deadline deadline) {
  std::lock_guard<std::mutex> transition(arena_.transition_mutex());
  HOLDFAST_RETURN_IF_ERROR(CheckTags(arena_, tags));
  // Pieces that an undone transition could not give back: another attempt.
  for (const std::size_t g : SelectGroups(arena_, tags, /*asleep=*/true)) {
    for (ArenaChunk& chunk : arena_.groups()[g].chunks) {
      HOLDFAST_RETURN_IF_ERROR(RemoveChunk(arena_.device(), chunk));
    }
  }
  Transition t = Begin(tags, /*asleep=*/false);
  TransitionReport report = Summarise(t);
  if (t.groups.empty()) {
    FinishReport(t, report);
    return report;
  }
  t.clock.Begin("prepare");
  HOLDFAST_RETURN_IF_ERROR(PrepareBackups(t));
  t.clock.Begin("drain");
  HOLDFAST_RETURN_IF_ERROR(t.faults.unmap_early
                               ? arena_.gate().CloseWithoutFence(deadline)
                               : arena_.gate().CloseAndDrain(arena_.device(), deadline));
  ReopenAtEnd reopen(arena_.gate());
  HOLDFAST_RETURN_IF_ERROR(CopyOut(t));
  if (absl::Status taken = TakeAway(t); !taken.ok()) return UndoSleep(t, taken);
  Publish(t, /*asleep=*/true);
  FinishReport(t, report);
  return report;
}

absl::StatusOr<TransitionReport> Residency::Wake(const std::vector<std::string>& tags) {
  std::lock_guard<std::mutex> transition(arena_.transition_mutex());
  HOLDFAST_RETURN_IF_ERROR(CheckTags(arena_, tags));
  Transition t = Begin(tags, /*asleep=*/true);
  TransitionReport report = Summarise(t);
  if (t.groups.empty()) {
    FinishReport(t, report);
    return report;
  }
  HOLDFAST_RETURN_IF_ERROR(CheckFreeMemory(t, tags));
  if (t.faults.flip_bit) PlantFlippedBit(t, faults_);
  // The gate stays open: nobody is admitted to a tag that is not published as awake, and graphs of
  // other tags go on replaying.
  if (absl::Status back = BringBack(t); !back.ok()) {
    RemoveAll(t);
    return back;
  }
  ForgetMutableBackups(t);
  Publish(t, /*asleep=*/false);
  FinishReport(t, report);
  return report;
}

bool Residency::asleep(const std::string& tag) const { return arena_.asleep(tag); }

std::uint64_t Residency::backing_bytes() const { return backing_->held_bytes(); }

absl::StatusOr<std::map<std::string, std::vector<Hash128>>> Residency::HashKept() {
  std::lock_guard<std::mutex> transition(arena_.transition_mutex());
  std::map<std::string, std::vector<Hash128>> hashes;
  for (const ArenaGroup& group : arena_.groups()) {
    if (group.dropped() || group.asleep) continue;
    std::vector<AddressRange> ranges;
    for (const ArenaChunk& chunk : group.chunks) ranges.push_back(chunk.range);
    HOLDFAST_ASSIGN_OR_RETURN(const std::vector<std::vector<Hash128>> by_chunk,
                              HashRanges(arena_.device(), *stream_, hash_room_, ranges));
    std::vector<Hash128>& row = hashes[GroupName(group.spec)];
    for (const std::vector<Hash128>& chunk : by_chunk)
      row.insert(row.end(), chunk.begin(), chunk.end());
  }
  return hashes;
}

void Residency::PlantFaults(const ResidencyFaults& faults) {
  std::lock_guard<std::mutex> transition(arena_.transition_mutex());
  faults_ = faults;
}

}  // namespace holdfast
