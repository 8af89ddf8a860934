// Kept contents come back from their backups, into pages that are mapped writable and that nobody
// may use yet, and are compared with the hashes taken when they left.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/arena_layout.h"
#include "allocator/group_pages.h"
#include "allocator/transition.h"
#include "device/error.h"

namespace holdfast {
namespace {

struct CopyIn {
  std::size_t group = 0;
  AddressRange to;
  const std::byte* from = nullptr;
  const std::vector<Hash128>* hashes = nullptr;
};

// One copy for each lost kept chunk.
absl::StatusOr<std::vector<CopyIn>> CopiesIn(Transition& t) {
  std::vector<CopyIn> copies;
  for (const std::size_t g : t.groups) {
    const ArenaGroup& group = t.group(g);
    if (group.dropped()) continue;
    for (const ArenaChunk& chunk : group.chunks) {
      if (!chunk.lost) continue;
      const Backup* backup = t.backing.Find(chunk.range.base);
      if (backup == nullptr || !backup->valid) {
        return MakeError({.kind = ErrorKind::kInternal, .object = GroupName(group.spec)},
                         "no backup of its contents: put to sleep by another Residency?");
      }
      copies.push_back({g, chunk.range, backup->bytes.data(), &backup->hashes});
    }
  }
  return copies;
}

// The fault: two pieces of equal size and different contents change places. Two chunks, else the
// first two leaves of one chunk.
absl::Status PlantSwap(std::vector<CopyIn>& copies, std::vector<CopyIn>& to_copy) {
  to_copy = copies;
  for (std::size_t a = 0; a < copies.size(); ++a) {
    for (std::size_t b = a + 1; b < copies.size(); ++b) {
      if (copies[a].to.bytes != copies[b].to.bytes) continue;
      if (std::memcmp(copies[a].from, copies[b].from, copies[a].to.bytes) == 0) continue;
      std::swap(to_copy[a].from, to_copy[b].from);
      return absl::OkStatus();
    }
  }
  for (const CopyIn& copy : copies) {
    if (copy.to.bytes < 2 * kHashLeafBytes) continue;
    if (std::memcmp(copy.from, copy.from + kHashLeafBytes, kHashLeafBytes) == 0) continue;
    CopyIn first = copy, second = copy;  // run after the whole chunk's copy, over what it wrote
    first.to = {copy.to.base, kHashLeafBytes};
    first.from = copy.from + kHashLeafBytes;
    second.to = {copy.to.base + kHashLeafBytes, kHashLeafBytes};
    to_copy.push_back(first);
    to_copy.push_back(second);
    return absl::OkStatus();
  }
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "swap chunks"},
                   "no two kept pieces differ: the fault cannot be planted");
}

// The span that a damaged leaf belongs to: the one at its first byte, else the first inside it.
std::string SpanAt(const Arena& arena, AddressRange leaf) {
  if (const auto hit = arena.Locate(leaf.base)) {
    const SpanInfo span = arena.span(hit->span);
    if (span.range.Contains(leaf.base)) return span.spec.name;
  }
  for (const SpanInfo& span : arena.spans()) {
    if (leaf.Contains(span.range.base)) return span.spec.name;
  }
  return "no span";
}

// True if some other leaf was expected to hash like this: then nothing was damaged, but pieces
// changed places.
bool IsAnotherLeaf(const std::vector<CopyIn>& copies, const Hash128& found) {
  return std::any_of(copies.begin(), copies.end(), [&](const CopyIn& copy) {
    return std::find(copy.hashes->begin(), copy.hashes->end(), found) != copy.hashes->end();
  });
}

absl::Status Damaged(Transition& t, const CopyIn& copy, std::size_t leaf, bool misplaced) {
  const ArenaGroup& group = t.group(copy.group);
  const std::uint64_t begin = leaf * kHashLeafBytes;
  const std::uint64_t end = std::min(begin + kHashLeafBytes, copy.to.bytes);
  const AddressRange range{copy.to.base + begin, end - begin};
  const std::uint64_t in_group = range.base - group.extent.base;
  return MakeError(
      {.kind = misplaced ? ErrorKind::kMisplaced : ErrorKind::kCorrupted,
       .object = SpanAt(t.arena, range)},
      absl::StrCat(misplaced ? "came back with the contents of another leaf: leaf "
                             : "contents changed while asleep: leaf ",
                   leaf, " of the chunk at 0x", absl::Hex(copy.to.base.value), ", bytes ", in_group,
                   " to ", in_group + range.bytes, " of group ", GroupName(group.spec)));
}

absl::Status CompareHashes(Transition& t, const std::vector<CopyIn>& copies) {
  t.clock.Begin("hash");
  std::vector<AddressRange> ranges;
  for (const CopyIn& copy : copies) ranges.push_back(copy.to);
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<std::vector<Hash128>> now,
                            HashRanges(t.device(), t.stream, t.hashes, ranges));
  for (std::size_t i = 0; i < copies.size(); ++i) {
    for (std::size_t leaf = 0; leaf < now[i].size(); ++leaf) {
      const Hash128& found = now[i][leaf];
      if (found == (*copies[i].hashes)[leaf]) continue;
      return Damaged(t, copies[i], leaf, IsAnotherLeaf(copies, found));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RestoreKept(Transition& t) {
  t.clock.Begin("copy");
  HOLDFAST_ASSIGN_OR_RETURN(std::vector<CopyIn> copies, CopiesIn(t));
  std::vector<CopyIn> to_copy = copies;
  if (t.faults.swap_chunks) HOLDFAST_RETURN_IF_ERROR(PlantSwap(copies, to_copy));
  if (copies.empty()) return absl::OkStatus();
  for (const CopyIn& copy : to_copy) {
    HOLDFAST_RETURN_IF_ERROR(
        t.device().CopyToDevice(t.stream, copy.to.base, copy.from, copy.to.bytes));
  }
  HOLDFAST_RETURN_IF_ERROR(t.device().Synchronize(t.stream));
  return t.verify ? CompareHashes(t, copies) : absl::OkStatus();
}

}  // namespace holdfast
