// Loading through the pool: the loader writes contents into the rooms of the backups and copies
// them to the device from there, so that the first sleep finds them in place.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/arena_layout.h"
#include "allocator/group_pages.h"
#include "allocator/host_rooms.h"
#include "allocator/leaf_check.h"
#include "allocator/leaf_hashes.h"
#include "allocator/residency.h"
#include "allocator/residency_state.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostHashThreads = 8;

bool Overlap(AddressRange a, AddressRange b) { return a.base < b.end() && b.base < a.end(); }

AddressRange Intersection(AddressRange a, AddressRange b) {
  const DeviceAddress begin = std::max(a.base, b.base);
  const DeviceAddress end = std::min(a.end(), b.end());
  return {begin, end - begin};
}

absl::Status CannotStage(const SpanInfo& span, ErrorKind kind, const std::string& why) {
  return MakeError({.kind = kind, .object = span.spec.name}, why);
}

// The index of the group that holds the span, if its contents can be staged now.
absl::StatusOr<std::size_t> GroupToStage(Arena& arena, const SpanInfo& span) {
  for (std::size_t g = 0; g < arena.groups().size() && span.range.bytes > 0; ++g) {
    const ArenaGroup& group = arena.groups()[g];
    if (!group.extent.Contains(span.range.base)) continue;
    if (group.dropped()) {
      return CannotStage(span, ErrorKind::kInvalidArgument, "its contents are not kept");
    }
    if (group.asleep) return CannotStage(span, ErrorKind::kAsleep, "its tag is asleep");
    if (span.range.end() > group.extent.base + group.committed_bytes) {
      return CannotStage(span, ErrorKind::kInvalidArgument, "it is not committed");
    }
    return g;
  }
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = arena.name()}, "no such span");
}

// What lies between the spans reads zero on the device, and a reused room holds something else.
void ClearGaps(const Arena& arena, const KeptChunk& kept, std::byte* room) {
  DeviceAddress reached = kept.kept.base;
  const auto clear_to = [&](DeviceAddress end) {
    if (end > reached) std::memset(room + (reached - kept.kept.base), 0, end - reached);
  };
  for (const SpanContents& span : arena.ContentsOf(kept.group)) {
    if (!Overlap(span.range, kept.kept)) continue;
    const AddressRange inside = Intersection(span.range, kept.kept);
    clear_to(inside.base);
    reached = std::max(reached, inside.end());
  }
  clear_to(kept.kept.end());
}

// Makes the chunk's room one that a loader writes into.
void BeginStaging(const Arena& arena, const KeptChunk& kept, Backup& backup) {
  if (backup.staged) return;
  backup.ForgetContents();
  backup.staged = true;
  ClearGaps(arena, kept, backup.room.data());
}

// Hashes of the rooms' leaves, taken on the host by a few threads.
void HashRooms(const std::vector<Backup*>& backups, std::vector<std::vector<Hash128>>& hashes) {
  struct Leaf {
    std::size_t room, leaf;
  };
  std::vector<Leaf> leaves;
  hashes.resize(backups.size());
  for (std::size_t b = 0; b < backups.size(); ++b) {
    hashes[b].resize(LeavesOf(backups[b]->room.size()));
    for (std::size_t leaf = 0; leaf < hashes[b].size(); ++leaf) leaves.push_back({b, leaf});
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < leaves.size(); i = next++) {
      const auto [room, leaf] = leaves[i];
      const std::uint64_t begin = leaf * kHashLeafBytes;
      const std::uint64_t bytes = std::min(kHashLeafBytes, backups[room]->room.size() - begin);
      hashes[room][leaf] = HashLeafOnHost(backups[room]->room.data() + begin, bytes);
    }
  };
  const std::size_t threads =
      std::min({kMostHashThreads, leaves.size(),
                static_cast<std::size_t>(std::max(1u, std::thread::hardware_concurrency()))});
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace

absl::StatusOr<std::vector<StagedPiece>> Residency::Stage(SpanId id) {
  Arena& arena = state_->arena;
  std::lock_guard<std::mutex> transition(arena.transition_mutex());
  const SpanInfo span = arena.span(id);
  HOLDFAST_ASSIGN_OR_RETURN(const std::size_t group, GroupToStage(arena, span));
  std::vector<KeptChunk> touched;
  for (const KeptChunk& kept : KeptChunksOf(arena, {group})) {
    if (Overlap(kept.kept, span.range)) touched.push_back(kept);
  }
  HOLDFAST_RETURN_IF_ERROR(MakeRooms(*state_, touched));
  std::vector<StagedPiece> pieces;
  for (const KeptChunk& kept : touched) {
    Backup& backup = *FindBackup(state_->backups, kept.kept);
    BeginStaging(arena, kept, backup);
    const AddressRange part = Intersection(kept.kept, span.range);
    pieces.push_back({part, backup.room.data() + (part.base - kept.kept.base)});
  }
  return pieces;
}

absl::Status Residency::AdoptStaged(const std::string& tag) {
  Arena& arena = state_->arena;
  std::lock_guard<std::mutex> transition(arena.transition_mutex());
  HOLDFAST_RETURN_IF_ERROR(CheckTags(arena, {tag}));
  std::vector<KeptChunk> staged;
  std::vector<HashPiece> pieces;
  std::vector<Backup*> backups;
  for (const KeptChunk& kept : KeptChunksOf(arena, SelectGroups(arena, {tag}, /*asleep=*/false))) {
    Backup* backup = FindBackup(state_->backups, kept.kept);
    if (backup == nullptr || !backup->staged) continue;
    staged.push_back(kept);
    pieces.push_back({kept.kept, kept.first_leaf});
    backups.push_back(backup);
  }
  absl::Status status =
      LaunchHashes(state_->device(), *state_->hashes, pieces, state_->leaf_hashes());
  std::vector<std::vector<Hash128>> hashes;
  if (status.ok()) HashRooms(backups, hashes);
  if (status.ok()) status = state_->device().Synchronize(*state_->hashes);
  if (!status.ok()) {
    Settle(state_->device(), *state_->hashes);
    return status;
  }
  for (std::size_t i = 0; i < staged.size(); ++i) {
    const Hash128* on_device = state_->leaf_hashes() + staged[i].first_leaf;
    const auto differs =
        std::mismatch(hashes[i].begin(), hashes[i].end(), on_device).first - hashes[i].begin();
    if (differs == static_cast<std::ptrdiff_t>(hashes[i].size())) continue;
    const auto leaf = static_cast<std::size_t>(differs);
    for (Backup* backup : backups) backup->staged = false;
    return MakeError({.kind = ErrorKind::kCorrupted, .object = SpanOfLeaf(arena, staged[i], leaf)},
                     absl::StrCat("the staged room does not hold what the device holds: ",
                                  LeafPlace(staged[i], arena.groups()[staged[i].group], leaf)));
  }
  for (std::size_t i = 0; i < staged.size(); ++i) {
    Backup& backup = *backups[i];
    backup.hashes = std::move(hashes[i]);
    std::fill(backup.known.begin(), backup.known.end(), true);
    backup.clean_at = staged[i].seal;
    backup.staged = false;
  }
  return absl::OkStatus();
}

}  // namespace holdfast
