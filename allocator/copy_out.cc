// Sleep's first half: kept contents go to their backups while every page is still there.
#include <utility>

#include "allocator/group_pages.h"
#include "allocator/transition.h"
#include "device/error.h"

namespace holdfast {
namespace {

struct KeptChunk {
  AddressRange range;
  Backup* backup = nullptr;
};

// The chunks of kept groups whose backups do not hold the contents already.
std::vector<KeptChunk> DirtyChunks(Transition& t) {
  std::vector<KeptChunk> dirty;
  for (const std::size_t g : t.groups) {
    const ArenaGroup& group = t.group(g);
    if (group.dropped()) continue;
    for (const ArenaChunk& chunk : group.chunks) {
      Backup* backup = t.backing.Find(chunk.range.base);
      if (!IsClean(group, backup)) dirty.push_back({chunk.range, backup});
    }
  }
  return dirty;
}

}  // namespace

bool IsClean(const ArenaGroup& group, const Backup* backup) {
  return group.sealed && backup != nullptr && backup->valid;
}

absl::Status PrepareBackups(Transition& t) {
  std::vector<AddressRange> rooms;
  for (const KeptChunk& kept : DirtyChunks(t)) rooms.push_back(kept.range);
  HOLDFAST_RETURN_IF_ERROR(t.backing.PrepareAll(rooms));
  if (!t.verify) return absl::OkStatus();
  // For all kept groups, not only those of this call: a later wake of several tags at once should
  // not have to allocate.
  std::uint64_t leaves = 0;
  for (const ArenaGroup& group : t.arena.groups()) {
    if (group.dropped()) continue;
    for (const ArenaChunk& chunk : group.chunks) leaves += LeavesOf(chunk.range.bytes);
  }
  return ReserveHashRoom(t.device(), t.hashes, leaves);
}

absl::Status CopyOut(Transition& t) {
  const std::vector<KeptChunk> dirty = DirtyChunks(t);
  if (t.verify) {
    // On the device and before anything is unmapped: what a later copy in is measured against must
    // not have gone through the copy out.
    t.clock.Begin("hash");
    std::vector<AddressRange> ranges;
    for (const KeptChunk& kept : dirty) ranges.push_back(kept.range);
    HOLDFAST_ASSIGN_OR_RETURN(std::vector<std::vector<Hash128>> hashes,
                              HashRanges(t.device(), t.stream, t.hashes, ranges));
    for (std::size_t i = 0; i < dirty.size(); ++i) dirty[i].backup->hashes = std::move(hashes[i]);
  }
  t.clock.Begin("copy");
  absl::Status status;
  for (const KeptChunk& kept : dirty) {
    status = t.device().CopyToHost(t.stream, kept.backup->bytes.data(), kept.range.base,
                                   kept.range.bytes);
    if (!status.ok()) break;
  }
  if (status.ok()) status = t.device().Synchronize(t.stream);
  if (!status.ok()) {
    Settle(t.device(), t.stream);
    return status;
  }
  for (const KeptChunk& kept : dirty) kept.backup->valid = true;
  return absl::OkStatus();
}

void ForgetMutableBackups(Transition& t) {
  for (const std::size_t g : t.groups) {
    const ArenaGroup& group = t.group(g);
    if (group.sealed) continue;
    for (const ArenaChunk& chunk : group.chunks) {
      Backup* backup = t.backing.Find(chunk.range.base);
      if (backup != nullptr) backup->valid = false;
    }
  }
}

}  // namespace holdfast
