#include "allocator/transition.h"

#include <algorithm>
#include <set>
#include <utility>

#include "allocator/group_pages.h"
#include "device/error.h"

namespace holdfast {
namespace {

// Some holder may write to pages of the group, whatever our own mapping says.
bool HasWriter(const Arena& arena, const ArenaGroup& group) {
  for (const RegisteredHolder& holder : arena.registrations().all()) {
    if (!holder.registration.writes) continue;
    for (const SpanId span : holder.registration.spans) {
      if (group.extent.Contains(arena.range(span).base)) return true;
    }
  }
  return false;
}

std::optional<SealStamp> SealOf(const Arena& arena, const ArenaGroup& group) {
  if (!group.sealed || HasWriter(arena, group)) return std::nullopt;
  return SealStamp{group.writable_epoch, arena.registrations().writers_added()};
}

}  // namespace

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
  for (const std::string& tag : tags) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].spec.tag == tag && groups[g].asleep == asleep) selected.push_back(g);
    }
  }
  return selected;
}

std::vector<KeptChunk> KeptChunksOf(Arena& arena, const std::vector<std::size_t>& groups) {
  std::vector<KeptChunk> kept;
  std::size_t leaf = 0;
  for (const std::size_t g : groups) {
    const ArenaGroup& group = arena.groups()[g];
    if (group.dropped()) continue;
    const std::optional<SealStamp> seal = SealOf(arena, group);
    for (std::size_t c = 0; c < group.chunks.size(); ++c) {
      const AddressRange part = KeptPart(group, group.chunks[c]);
      if (part.bytes == 0) continue;
      kept.push_back({.group = g, .chunk = c, .kept = part, .first_leaf = leaf, .seal = seal});
      leaf += LeavesOf(part.bytes);
    }
  }
  return kept;
}

absl::StatusOr<std::vector<std::unique_lock<std::mutex>>> LockArenas(
    const std::vector<ResidencyState*>& states) {
  std::vector<Arena*> arenas;
  for (const ResidencyState* state : states) arenas.push_back(&state->arena);
  std::sort(arenas.begin(), arenas.end(), std::less<Arena*>());
  if (arenas.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "arenas"}, "no arenas given");
  }
  const auto twice = std::adjacent_find(arenas.begin(), arenas.end());
  if (twice != arenas.end()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = (*twice)->name()},
                     "arena given twice");
  }
  std::vector<std::unique_lock<std::mutex>> locks;
  for (Arena* arena : arenas) locks.emplace_back(arena->transition_mutex());
  return locks;
}

bool AnyLost(const ArenaGroup& group) {
  return std::any_of(group.chunks.begin(), group.chunks.end(),
                     [](const ArenaChunk& chunk) { return chunk.lost; });
}

bool IsClean(const Transition& t, const KeptChunk& kept) {
  const Backup* backup = t.backup(kept);
  if (backup == nullptr || backup->staged) return false;
  if (t.faults.trust_stale) return backup->AllKnown();
  return backup->clean_at.has_value() && backup->clean_at == kept.seal;
}

void SettleStreams(Transition& t) {
  Settle(t.device(), *t.state.copies);
  Settle(t.device(), *t.state.hashes);
  Settle(t.device(), *t.state.fills);
}

TagTransition& RowOf(TransitionReport& report, const std::string& tag) {
  for (TagTransition& row : report.tags) {
    if (row.tag == tag) return row;
  }
  report.tags.push_back({.tag = tag});
  return report.tags.back();
}

}  // namespace holdfast
