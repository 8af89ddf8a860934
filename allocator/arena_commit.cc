// Pages behind spans.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/arena.h"
#include "allocator/arena_layout.h"
#include "allocator/group_pages.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<Arena::GroupEnd> Arena::EndOf(const SpanPrefix& prefix) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::uint32_t index = prefix.span.index;
  if (index >= spans_.size() || spans_[index].spec.name.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name_}, "no such span");
  }
  const SpanInfo& info = spans_[index];
  const std::uint64_t bytes = prefix.bytes == UINT64_MAX ? info.spec.bytes : prefix.bytes;
  if (bytes > info.spec.bytes) {
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = info.spec.name,
                      .need = bytes,
                      .have = info.spec.bytes},
                     "beyond the span");
  }
  const std::size_t g = span_group_[index];
  return GroupEnd{g, info.range.base - groups_[g].extent.base + bytes};
}

absl::Status Arena::Commit(SpanId span, std::uint64_t bytes) {
  return CommitTogether({{span, bytes}});
}

absl::Status Arena::CommitTogether(const std::vector<SpanPrefix>& prefixes) {
  std::lock_guard<std::mutex> transition(transition_mutex_);
  std::vector<GroupEnd> ends;
  for (const SpanPrefix& prefix : prefixes) {
    HOLDFAST_ASSIGN_OR_RETURN(const GroupEnd end, EndOf(prefix));
    if (prefix.bytes > 0) ends.push_back(end);
  }
  return ExtendGroups(ends);
}

absl::Status Arena::CommitTag(const std::string& tag) {
  std::lock_guard<std::mutex> transition(transition_mutex_);
  if (!HasTag(tag)) {
    return MakeError({.kind = ErrorKind::kNotFound, .object = tag}, "no such tag");
  }
  std::vector<GroupEnd> ends;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].spec.tag == tag) ends.push_back({g, LiveEnd(g)});
  }
  return ExtendGroups(ends);
}

absl::Status Arena::ExtendGroups(const std::vector<GroupEnd>& ends) {
  struct Before {
    std::size_t group, chunks;
    std::uint64_t committed;
  };
  std::vector<Before> done;
  for (const GroupEnd& end : ends) {
    const ArenaGroup& group = groups_[end.group];
    const Before before{end.group, group.chunks.size(), group.committed_bytes};
    if (absl::Status extended = ExtendGroup(end.group, end.end); !extended.ok()) {
      for (auto b = done.rbegin(); b != done.rend(); ++b) {
        ShrinkGroup(b->group, b->chunks, b->committed);
      }
      return extended;
    }
    done.push_back(before);
  }
  return absl::OkStatus();
}

absl::Status Arena::ExtendGroup(std::size_t g, std::uint64_t end) {
  ArenaGroup& group = groups_[g];
  const std::uint64_t target = AlignUp(end, device_.info().granularity);
  if (target <= group.committed_bytes) return absl::OkStatus();
  if (group.asleep) {
    return MakeError({.kind = ErrorKind::kAsleep, .object = GroupName(group.spec)},
                     "no pages are added to a sleeping group");
  }
  if (group.sealed) {
    return MakeError({.kind = ErrorKind::kLocked, .object = GroupName(group.spec)},
                     "no pages are added to a sealed group");
  }
  HOLDFAST_RETURN_IF_ERROR(RemoveOrphans());

  std::vector<ArenaChunk> added;
  for (std::uint64_t offset = group.committed_bytes; offset < target;) {
    const std::uint64_t bytes = std::min(target - offset, group.spec.chunk_bytes);
    added.push_back({.range = {group.extent.base + offset, bytes},
                     .chunk = {},
                     .shareable = group.spec.shareable});
    offset += bytes;
  }
  if (absl::Status made = MakeZeroedPages(added); !made.ok()) {
    for (ArenaChunk& chunk : added) {
      if (!RemoveChunk(device_, chunk).ok()) orphans_.push_back(chunk);
    }
    return Annotate(made, "commit of " + GroupName(group.spec));
  }
  group.chunks.insert(group.chunks.end(), added.begin(), added.end());
  group.committed_bytes = target;
  std::lock_guard<std::mutex> lock(mutex_);
  group_committed_[g] = target;
  return absl::OkStatus();
}

absl::Status Arena::MakeZeroedPages(std::vector<ArenaChunk>& chunks) {
  // New physical memory has always been seen to read as zero, but no driver promises it.
  absl::Status status;
  for (std::size_t i = 0; i < chunks.size() && status.ok(); ++i) {
    ArenaChunk& chunk = chunks[i];
    status = MapChunk(device_, chunk);
    if (status.ok()) status = device_.SetAccess(chunk.range, Access::kReadWrite);
    if (status.ok()) status = device_.Fill(*stream_, chunk.range.base, 0, chunk.range.bytes);
  }
  if (status.ok()) status = device_.Synchronize(*stream_);
  if (!status.ok()) {
    Settle(device_, *stream_);
    return status;
  }
  for (ArenaChunk& chunk : chunks) chunk.lost = false;
  return absl::OkStatus();
}

void Arena::ShrinkGroup(std::size_t g, std::size_t chunks, std::uint64_t committed_bytes) {
  ArenaGroup& group = groups_[g];
  for (std::size_t i = chunks; i < group.chunks.size(); ++i) {
    if (!RemoveChunk(device_, group.chunks[i]).ok()) orphans_.push_back(group.chunks[i]);
  }
  group.chunks.resize(chunks);
  group.committed_bytes = committed_bytes;
  std::lock_guard<std::mutex> lock(mutex_);
  group_committed_[g] = committed_bytes;
}

std::uint64_t Arena::FirstChunkFrom(std::size_t g, std::uint64_t end) const {
  const ArenaGroup& group = groups_[g];
  for (const ArenaChunk& chunk : group.chunks) {
    const std::uint64_t begin = chunk.range.base - group.extent.base;
    if (begin >= end) return begin;
  }
  return group.committed_bytes;
}

std::uint64_t Arena::ShrinkGroupTo(std::size_t g, std::uint64_t end) {
  const std::uint64_t kept = FirstChunkFrom(g, end);
  const std::uint64_t given_back = groups_[g].committed_bytes - kept;
  std::size_t chunks = 0;
  for (std::uint64_t covered = 0; covered < kept; ++chunks) {
    covered += groups_[g].chunks[chunks].range.bytes;
  }
  ShrinkGroup(g, chunks, kept);
  return given_back;
}

absl::Status Arena::RemoveOrphans() {
  while (!orphans_.empty()) {
    HOLDFAST_RETURN_IF_ERROR(RemoveChunk(device_, orphans_.back()));
    orphans_.pop_back();
  }
  return absl::OkStatus();
}

}  // namespace holdfast
