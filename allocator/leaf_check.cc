#include "allocator/leaf_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/arena_layout.h"
#include "device/error.h"

namespace holdfast {
namespace {

AddressRange LeafRange(const KeptChunk& kept, std::size_t leaf) {
  const std::uint64_t begin = leaf * kHashLeafBytes;
  const std::uint64_t end = std::min(begin + kHashLeafBytes, kept.kept.bytes);
  return {kept.kept.base + begin, end - begin};
}

bool IsAnotherLeaf(const Transition& t, const std::vector<KeptChunk>& all, const Hash128& found) {
  return std::any_of(all.begin(), all.end(), [&](const KeptChunk& kept) {
    const std::vector<Hash128>& hashes = t.backup(kept)->hashes;
    return std::find(hashes.begin(), hashes.end(), found) != hashes.end();
  });
}

}  // namespace

std::ptrdiff_t FirstDamagedLeaf(const Backup& backup, const Hash128* now) {
  for (std::size_t leaf = 0; leaf < backup.hashes.size(); ++leaf) {
    if (backup.known[leaf] && now[leaf] != backup.hashes[leaf]) {
      return static_cast<std::ptrdiff_t>(leaf);
    }
  }
  return -1;
}

std::string SpanOfLeaf(const Arena& arena, const KeptChunk& kept, std::size_t leaf) {
  const AddressRange range = LeafRange(kept, leaf);
  if (const auto hit = arena.Locate(range.base)) {
    const SpanInfo span = arena.span(hit->span);
    if (span.range.Contains(range.base)) return span.spec.name;
  }
  for (const SpanInfo& span : arena.spans()) {
    if (range.Contains(span.range.base)) return span.spec.name;
  }
  return "no span";
}

std::string LeafPlace(const KeptChunk& kept, const ArenaGroup& group, std::size_t leaf) {
  const AddressRange range = LeafRange(kept, leaf);
  const std::uint64_t in_group = range.base - group.extent.base;
  return absl::StrCat("leaf ", leaf, " of the chunk at 0x", absl::Hex(kept.kept.base.value),
                      ", bytes ", in_group, " to ", in_group + range.bytes, " of group ",
                      GroupName(group.spec));
}

absl::Status DamagedLeaf(const Transition& t, const std::vector<KeptChunk>& all,
                         const KeptChunk& kept, std::size_t leaf, const Hash128& found) {
  const bool misplaced = IsAnotherLeaf(t, all, found);
  return MakeError({.kind = misplaced ? ErrorKind::kMisplaced : ErrorKind::kCorrupted,
                    .object = SpanOfLeaf(t.arena(), kept, leaf)},
                   absl::StrCat(misplaced ? "came back with the contents of another leaf: "
                                          : "contents changed while asleep: ",
                                LeafPlace(kept, t.group(kept.group), leaf)));
}

}  // namespace holdfast
