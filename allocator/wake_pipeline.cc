#include "allocator/wake_pipeline.h"

#include <algorithm>
#include <utility>

#include "allocator/arena_layout.h"
#include "allocator/group_pages.h"
#include "allocator/leaf_check.h"
#include "allocator/restore_dropped.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr auto kForever = std::chrono::steady_clock::time_point::max();

Access FinalAccess(const ArenaGroup& group) {
  return group.sealed ? Access::kRead : Access::kReadWrite;
}

}  // namespace

WakePipeline::WakePipeline(Transition& t, Order order, bool announce)
    : t_(t), order_(order), announce_(announce), left_(t.arena().groups().size()) {
  const auto add = [&](std::size_t g) {
    const ArenaGroup& group = t.group(g);
    const std::size_t before = units_.size();
    if (group.dropped()) {
      units_.push_back({.group = g, .dropped = true});
    } else {
      for (std::size_t c = 0; c < group.chunks.size(); ++c) units_.push_back({g, c});
    }
    left_[g] = units_.size() - before;
  };
  // t.groups come in the order of the tags.
  std::vector<std::size_t> groups = t.groups;
  const auto kept_first = [&](auto begin, auto end) {
    std::stable_partition(begin, end, [&](std::size_t g) { return !t.group(g).dropped(); });
  };
  if (order_ == Order::kKeptFirst) {
    kept_first(groups.begin(), groups.end());
  } else {
    for (auto begin = groups.begin(); begin != groups.end();) {
      const std::string& tag = t.group(*begin).spec.tag;
      const auto end = std::find_if(begin, groups.end(),
                                    [&](std::size_t g) { return t.group(g).spec.tag != tag; });
      kept_first(begin, end);
      begin = end;
    }
  }
  for (const std::size_t g : groups) add(g);
  kept_end_ = units_.size();
  if (order_ == Order::kKeptFirst) {
    kept_end_ = static_cast<std::size_t>(
        std::find_if(units_.begin(), units_.end(), [](const Unit& u) { return u.dropped; }) -
        units_.begin());
  }
  next_dropped_ = kept_end_;
}

absl::Status WakePipeline::PlanCopies() {
  std::size_t leaf = 0;
  for (Unit& unit : units_) {
    if (unit.dropped) continue;
    const ArenaGroup& group = t_.group(unit.group);
    const ArenaChunk& chunk = group.chunks[unit.chunk];
    if (chunk.chunk && !chunk.lost) continue;
    const auto found = t_.state.backups.find(chunk.range.base);
    if (found == t_.state.backups.end() || !found->second.complete) {
      return MakeError({.kind = ErrorKind::kInternal, .object = GroupName(group.spec)},
                       "no backup of its contents: put to sleep by another Residency?");
    }
    const Backup& backup = found->second;
    // Spans may have been added behind the contents while they were away.
    KeptChunk kept{.group = unit.group,
                   .chunk = unit.chunk,
                   .kept = {chunk.range.base, backup.room.size()},
                   .first_leaf = leaf,
                   .seal = {}};
    leaf += LeavesOf(backup.room.size());
    unit.copy = static_cast<std::ptrdiff_t>(copies_.size());
    copies_.push_back({std::move(kept), backup.room.data()});
  }
  return absl::OkStatus();
}

absl::Status WakePipeline::Plan() {
  HOLDFAST_RETURN_IF_ERROR(PlanCopies());
  if (t_.faults.flip_bit) PlantFlippedBit(t_, copies_);
  if (t_.faults.swap_chunks) HOLDFAST_RETURN_IF_ERROR(PlantSwap(copies_));
  if (!announce_) return absl::OkStatus();
  std::vector<AddressRange> coming;
  for (const CopyIn& copy : copies_) coming.push_back(copy.chunk.kept);
  t_.state.progress.Coming(std::move(coming));
  return absl::OkStatus();
}

bool WakePipeline::Whole(const std::string& tag) const {
  return std::all_of(t_.groups.begin(), t_.groups.end(),
                     [&](std::size_t g) { return t_.group(g).spec.tag != tag || left_[g] == 0; });
}

absl::Status WakePipeline::Step() {
  if (next_ < kept_end_ && in_flight_.size() < kWakeWindow) return Begin(units_[next_++]);
  if (next_dropped_ < units_.size()) return Begin(units_[next_dropped_++]);
  return FinishOldest();
}

absl::Status WakePipeline::Begin(const Unit& unit) {
  if (!unit.dropped) return BeginChunk(unit);
  HOLDFAST_RETURN_IF_ERROR(BeginDropped(unit));
  --left_[unit.group];
  return absl::OkStatus();
}

absl::Status WakePipeline::BeginChunk(const Unit& unit) {
  const ArenaGroup& group = t_.group(unit.group);
  ArenaChunk& chunk = t_.group(unit.group).chunks[unit.chunk];
  const bool was_mapped = chunk.mapped;
  t_.clock.Begin(Stage::kMap);
  HOLDFAST_RETURN_IF_ERROR(MapChunk(t_.device(), chunk));
  t_.clock.Begin(Stage::kAccess);
  if (unit.copy < 0) {  // a sleep is undone, and this chunk has not gone
    --left_[unit.group];
    if (was_mapped) return absl::OkStatus();
    return t_.device().SetAccess(chunk.range, FinalAccess(group));
  }
  HOLDFAST_RETURN_IF_ERROR(t_.device().SetAccess(chunk.range, Access::kReadWrite));
  t_.clock.Begin(Stage::kCopy);
  const auto copy = static_cast<std::size_t>(unit.copy);
  const std::size_t marks = begun_++ % kWakeWindow;
  HOLDFAST_RETURN_IF_ERROR(EnqueueContents(copies_[copy], t_.state.marks[marks]));
  in_flight_.push_back({copy, marks});
  return absl::OkStatus();
}

absl::Status WakePipeline::EnqueueContents(const CopyIn& copy, WakeMarks& marks) {
  Device& device = t_.device();
  Stream& copies = *t_.state.copies;
  Stream& hashes = *t_.state.hashes;
  const AddressRange kept = copy.chunk.kept;
  const AddressRange chunk = t_.chunk(copy.chunk).range;
  if (kept.bytes < chunk.bytes) {
    // New pages have always been seen to read as zero, but no driver promises it.
    HOLDFAST_RETURN_IF_ERROR(device.Fill(hashes, kept.end(), 0, chunk.bytes - kept.bytes));
  }
  HOLDFAST_RETURN_IF_ERROR(device.CopyToDevice(copies, kept.base, copy.from, kept.bytes));
  if (copy.cross_leaves) {
    HOLDFAST_RETURN_IF_ERROR(
        device.CopyToDevice(copies, kept.base, copy.from + kHashLeafBytes, kHashLeafBytes));
    HOLDFAST_RETURN_IF_ERROR(
        device.CopyToDevice(copies, kept.base + kHashLeafBytes, copy.from, kHashLeafBytes));
  }
  HOLDFAST_RETURN_IF_ERROR(device.Record(*marks.copied, copies));
  HOLDFAST_RETURN_IF_ERROR(device.Wait(hashes, *marks.copied));
  if (t_.state.options.verify) {
    HOLDFAST_RETURN_IF_ERROR(device.HashLeaves(hashes, kept, t_.hashes_of(copy.chunk)));
  }
  return device.Record(*marks.done, hashes);
}

absl::Status WakePipeline::FinishOldest() {
  const InFlight oldest = in_flight_.front();
  in_flight_.pop_front();
  const KeptChunk& kept = copies_[oldest.copy].chunk;
  t_.clock.Begin(Stage::kCopy);
  HOLDFAST_RETURN_IF_ERROR(t_.device().SynchronizeBy(*t_.state.marks[oldest.marks].done, kForever));
  if (t_.state.options.verify) {
    t_.clock.Begin(Stage::kHash);
    const Hash128* now = t_.hashes_of(kept);
    if (const std::ptrdiff_t leaf = FirstDamagedLeaf(*t_.backup(kept), now); leaf >= 0) {
      std::vector<KeptChunk> all;
      for (const CopyIn& copy : copies_) all.push_back(copy.chunk);
      return DamagedLeaf(t_, all, kept, static_cast<std::size_t>(leaf), now[leaf]);
    }
  }
  if (t_.group(kept.group).sealed) {
    t_.clock.Begin(Stage::kAccess);
    HOLDFAST_RETURN_IF_ERROR(t_.device().SetAccess(t_.chunk(kept).range, Access::kRead));
  }
  if (announce_) t_.state.progress.Back(oldest.copy);
  --left_[kept.group];
  return absl::OkStatus();
}

absl::Status WakePipeline::BeginDropped(const Unit& unit) {
  ArenaGroup& group = t_.group(unit.group);
  bool all_mapped = true;
  t_.clock.Begin(Stage::kMap);
  for (ArenaChunk& chunk : group.chunks) {
    all_mapped = all_mapped && chunk.mapped;
    HOLDFAST_RETURN_IF_ERROR(MapChunk(t_.device(), chunk));
  }
  const bool fill = NeedsContents(group);
  if (group.chunks.empty() || (all_mapped && !fill)) return absl::OkStatus();
  t_.clock.Begin(Stage::kAccess);
  const AddressRange pages{group.extent.base, group.committed_bytes};
  HOLDFAST_RETURN_IF_ERROR(
      t_.device().SetAccess(pages, fill ? Access::kReadWrite : FinalAccess(group)));
  if (!fill) return absl::OkStatus();
  t_.clock.Begin(Stage::kFill);
  return EnqueueFills(t_, unit.group);
}

}  // namespace holdfast
