#include "allocator/transition.h"

#include <algorithm>
#include <set>
#include <utility>

#include "allocator/group_pages.h"
#include "device/error.h"

namespace holdfast {

void StageClock::Begin(const std::string& stage) {
  End();
  stage_ = stage;
  begun_ = std::chrono::steady_clock::now();
}

void StageClock::End() {
  if (stage_.empty()) return;
  seconds_[stage_] +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  stage_.clear();
}

absl::Status CheckTags(const Arena& arena, const std::vector<std::string>& tags) {
  if (tags.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "tags"}, "no tags given");
  }
  std::set<std::string> seen;
  for (const std::string& tag : tags) {
    if (!arena.HasTag(tag)) {
      return MakeError({.kind = ErrorKind::kNotFound, .object = tag}, "no such tag");
    }
    if (!seen.insert(tag).second) {
      return MakeError({.kind = ErrorKind::kInvalidArgument, .object = tag}, "tag given twice");
    }
  }
  return absl::OkStatus();
}

std::vector<std::size_t> SelectGroups(Arena& arena, const std::vector<std::string>& tags,
                                      bool asleep) {
  std::vector<std::size_t> selected;
  const std::vector<ArenaGroup>& groups = arena.groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const bool named = std::find(tags.begin(), tags.end(), groups[g].spec.tag) != tags.end();
    if (named && groups[g].asleep == asleep) selected.push_back(g);
  }
  return selected;
}

std::uint64_t LeavesOf(std::uint64_t bytes) {
  return bytes / kHashLeafBytes + (bytes % kHashLeafBytes != 0 ? 1 : 0);
}

absl::Status ReserveHashRoom(Device& device, HostBuffer& room, std::uint64_t leaves) {
  const std::uint64_t bytes = leaves * sizeof(Hash128);
  if (bytes <= room.size()) return absl::OkStatus();
  absl::StatusOr<HostBuffer> larger = device.AllocateHost(bytes);
  if (!larger.ok()) return Annotate(larger.status(), "room for hashes");
  room = *std::move(larger);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<Hash128>>> HashRanges(
    Device& device, Stream& stream, HostBuffer& room, const std::vector<AddressRange>& ranges) {
  std::uint64_t leaves = 0;
  for (const AddressRange& range : ranges) leaves += LeavesOf(range.bytes);
  HOLDFAST_RETURN_IF_ERROR(ReserveHashRoom(device, room, leaves));
  auto* out = reinterpret_cast<Hash128*>(room.data());
  absl::Status status;
  for (const AddressRange& range : ranges) {
    if (status.ok()) status = device.HashLeaves(stream, range, out);
    out += LeavesOf(range.bytes);
  }
  if (status.ok()) status = device.Synchronize(stream);
  if (!status.ok()) {
    Settle(device, stream);
    return status;
  }
  std::vector<std::vector<Hash128>> hashes;
  const auto* from = reinterpret_cast<const Hash128*>(room.data());
  for (const AddressRange& range : ranges) {
    hashes.emplace_back(from, from + LeavesOf(range.bytes));
    from += LeavesOf(range.bytes);
  }
  return hashes;
}

bool AnyLost(const ArenaGroup& group) {
  return std::any_of(group.chunks.begin(), group.chunks.end(),
                     [](const ArenaChunk& chunk) { return chunk.lost; });
}

}  // namespace holdfast
