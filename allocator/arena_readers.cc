// What may be asked of an arena at any time, also while a transition runs: only mutex_ is taken,
// and only briefly.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "allocator/arena.h"
#include "allocator/arena_layout.h"
#include "device/error.h"

namespace holdfast {

SpanInfo Arena::span(SpanId id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return id.index < spans_.size() ? spans_[id.index] : SpanInfo{};
}

AddressRange Arena::range(SpanId id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return id.index < spans_.size() ? spans_[id.index].range : AddressRange{};
}

std::optional<SpanId> Arena::Find(const std::string& name) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

std::vector<SpanInfo> Arena::spans() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return spans_;
}

std::optional<SpanHit> Arena::Locate(DeviceAddress address) const {
  std::lock_guard<std::mutex> lock(mutex_);
  // The last span that begins at or below the address. Where one ends and the next begins exactly
  // there, this is the next: the one that contains it.
  const auto after = by_address_.upper_bound(address.value);
  if (after == by_address_.begin()) return std::nullopt;
  const SpanId id = std::prev(after)->second;
  const AddressRange& range = spans_[id.index].range;
  if (!range.ContainsOrEnds(address)) return std::nullopt;
  return SpanHit{id, address - range.base};
}

const HostSpan* Arena::LocateHost(std::uint64_t address) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto after = host_by_address_.upper_bound(address);
  if (after == host_by_address_.begin()) return nullptr;
  const auto [base, span] = *std::prev(after);
  return address - base <= span->buffer.size() ? span : nullptr;
}

std::vector<TagBytes> Arena::bytes_by_tag() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<TagBytes> rows;
  const auto row_of = [&](const GroupSpec& spec) -> TagBytes& {
    for (TagBytes& row : rows) {
      if (row.tag == spec.tag && row.role == spec.role) return row;
    }
    rows.push_back({.tag = spec.tag, .role = spec.role});
    return rows.back();
  };
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    TagBytes& row = row_of(groups_[g].spec);
    row.committed_bytes += group_committed_[g];
    if (!group_asleep_[g]) row.resident_bytes += group_committed_[g];
  }
  for (std::size_t s = 0; s < spans_.size(); ++s) {
    if (spans_[s].spec.name.empty()) continue;  // freed
    const std::size_t g = span_group_[s];
    TagBytes& row = row_of(groups_[g].spec);
    ++row.spans;
    row.logical_bytes += spans_[s].spec.bytes;
    if (group_asleep_[g]) continue;
    const std::uint64_t begin = spans_[s].range.base - groups_[g].extent.base;
    const std::uint64_t pages = group_committed_[g] > begin ? group_committed_[g] - begin : 0;
    row.backed_bytes += std::min(spans_[s].spec.bytes, pages);
  }
  return rows;
}

bool Arena::HasTag(const std::string& tag) const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [&](const ArenaGroup& group) { return group.spec.tag == tag; });
}

bool Arena::asleep(const std::string& tag) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].spec.tag == tag && group_asleep_[g]) return true;
  }
  return false;
}

std::vector<std::string> Arena::tags() const {
  std::vector<std::string> tags;
  for (const ArenaGroup& group : groups_) {
    if (std::find(tags.begin(), tags.end(), group.spec.tag) == tags.end()) {
      tags.push_back(group.spec.tag);
    }
  }
  return tags;
}

absl::Status Arena::CheckReady(const std::vector<std::string>& tags) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& tag : tags) {
    bool found = false;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].spec.tag != tag) continue;
      found = true;
      if (group_asleep_[g]) {
        return MakeError({.kind = ErrorKind::kAsleep, .object = tag}, "the tag is asleep");
      }
      if (undefined_in_group_[g] == 0) continue;
      for (std::size_t s = 0; s < spans_.size(); ++s) {
        if (span_group_[s] != g || !undefined_[s]) continue;
        return MakeError({.kind = ErrorKind::kUndefinedContents, .object = spans_[s].spec.name},
                         absl::StrCat("not refilled since tag ", tag, " woke"));
      }
    }
    if (!found) return MakeError({.kind = ErrorKind::kNotFound, .object = tag}, "no such tag");
  }
  return absl::OkStatus();
}

absl::Status Arena::CheckAccessible(SpanId id, std::uint64_t offset, std::uint64_t bytes,
                                    bool read) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (id.index >= spans_.size() || spans_[id.index].spec.name.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name_}, "no such span");
  }
  const SpanInfo& span = spans_[id.index];
  const std::string& name = span.spec.name;
  if (offset > span.range.bytes || bytes > span.range.bytes - offset) {
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = name,
                      .need = bytes,
                      .have = span.range.bytes - std::min(offset, span.range.bytes)},
                     absl::StrCat("not inside the span from offset ", offset));
  }
  const std::size_t g = span_group_[id.index];
  if (group_asleep_[g]) {
    return MakeError({.kind = ErrorKind::kAsleep, .object = name},
                     absl::StrCat("tag ", span.spec.tag, " is asleep"));
  }
  const std::uint64_t begin = span.range.base - groups_[g].extent.base + offset;
  const std::uint64_t pages = group_committed_[g] > begin ? group_committed_[g] - begin : 0;
  if (bytes > pages) {
    return MakeError(
        {.kind = ErrorKind::kInvalidArgument, .object = name, .need = bytes, .have = pages},
        absl::StrCat("not committed from offset ", offset));
  }
  if (read && undefined_[id.index]) {
    return MakeError({.kind = ErrorKind::kUndefinedContents, .object = name},
                     absl::StrCat("not refilled since tag ", span.spec.tag, " woke"));
  }
  return absl::OkStatus();
}

std::vector<SpanContents> Arena::ContentsOf(std::size_t group) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<SpanContents> contents;
  for (std::uint32_t s = 0; s < spans_.size(); ++s) {
    if (span_group_[s] != group || spans_[s].spec.name.empty()) continue;
    const SpanSpec& spec = spans_[s].spec;
    contents.push_back({SpanId{s}, spans_[s].range, spec.wake_contents, spec.refill != nullptr});
  }
  return contents;
}

void Arena::SetUndefined(SpanId id, bool undefined) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (id.index >= spans_.size() || undefined_[id.index] == undefined) return;
  undefined_[id.index] = undefined;
  std::uint64_t& count = undefined_in_group_[span_group_[id.index]];
  count = undefined ? count + 1 : count - 1;
}

void Arena::PublishAsleep(std::size_t group, bool asleep) {
  groups_[group].asleep = asleep;
  std::lock_guard<std::mutex> lock(mutex_);
  group_asleep_[group] = asleep;
}

}  // namespace holdfast
