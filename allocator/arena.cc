// Life and layout of an arena: window, groups, spans. Pages are in arena_commit.cc, queries in
// arena_readers.cc.
#include "allocator/arena.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/arena_layout.h"
#include "allocator/group_pages.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr std::size_t kNoGroup = std::numeric_limits<std::size_t>::max();

absl::Status Invalid(const std::string& object, const std::string& message) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = object}, message);
}

// For the arena's end, where nobody can be told: a second attempt, then the process's end has to
// do.
void RemoveForGood(Device& device, ArenaChunk& chunk) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (RemoveChunk(device, chunk).ok()) return;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(Device& device, ArenaOptions options) {
  HOLDFAST_ASSIGN_OR_RETURN(GroupLayout layout,
                            LayOutGroups(options.groups, device.info().granularity));
  const std::vector<DeviceAddress> candidates =
      options.candidate_bases.empty() ? DefaultCandidateBases() : options.candidate_bases;
  auto arena = std::unique_ptr<Arena>(new Arena(device, std::move(options.name)));
  HOLDFAST_ASSIGN_OR_RETURN(arena->stream_, device.CreateStream(arena->name_ + " pages"));
  HOLDFAST_ASSIGN_OR_RETURN(const Window window,
                            ReserveWindow(device, arena->name_, layout.window_bytes, candidates));
  arena->window_ = window.range;
  arena->base_candidate_ = window.candidate;
  arena->groups_ = std::move(layout.groups);
  for (ArenaGroup& group : arena->groups_) {
    group.extent.base = window.range.base + group.extent.base.value;
  }
  arena->undefined_in_group_.resize(arena->groups_.size());
  arena->group_asleep_.resize(arena->groups_.size());
  arena->group_committed_.resize(arena->groups_.size());
  HOLDFAST_RETURN_IF_ERROR(arena->HoldLocalMemory());
  return arena;
}

Arena::~Arena() {
  for (ArenaGroup& group : groups_) {
    for (ArenaChunk& chunk : group.chunks) RemoveForGood(device_, chunk);
  }
  for (ArenaChunk& chunk : orphans_) RemoveForGood(device_, chunk);
  if (!DropLocalMemory().ok()) DropLocalMemory().IgnoreError();
  if (window_.bytes == 0) return;
  if (!device_.FreeAddress(window_).ok()) device_.FreeAddress(window_).IgnoreError();
}

absl::Status Arena::HoldLocalMemory() {
  if (holds_local_memory_) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(device_.HoldLocalMemory());
  holds_local_memory_ = true;
  return absl::OkStatus();
}

absl::Status Arena::DropLocalMemory() {
  if (!holds_local_memory_) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(device_.DropLocalMemory());
  holds_local_memory_ = false;
  return absl::OkStatus();
}

std::size_t Arena::FindGroup(const SpanSpec& spec) const {
  const bool always_dropped = spec.role == Role::kCache || spec.role == Role::kScratch;
  const bool refilled = !always_dropped && spec.refill != nullptr;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const GroupSpec& group = groups_[g].spec;
    if (group.tag == spec.tag && group.role == spec.role && group.refilled == refilled &&
        group.part == spec.part) {
      return g;
    }
  }
  return kNoGroup;
}

absl::Status Arena::CheckSpec(const SpanSpec& spec) const {
  if (spec.name.empty()) return Invalid("span", "empty name");
  if (spec.bytes == 0) return Invalid(spec.name, "span of zero bytes");
  if (!IsPowerOfTwo(spec.alignment) || spec.alignment > device_.info().granularity) {
    return Invalid(spec.name, absl::StrCat("alignment ", spec.alignment,
                                           " is not a power of two up to the granularity ",
                                           device_.info().granularity));
  }
  return absl::OkStatus();
}

absl::StatusOr<SpanId> Arena::Reserve(SpanSpec spec) {
  HOLDFAST_RETURN_IF_ERROR(CheckSpec(spec));
  std::lock_guard<std::mutex> transition(transition_mutex_);
  if (locked()) {
    return MakeError({.kind = ErrorKind::kLocked, .object = spec.name}, "the arena is locked");
  }
  const std::size_t g = FindGroup(spec);
  if (g == kNoGroup) {
    return MakeError(
        {.kind = ErrorKind::kNotFound, .object = spec.name},
        absl::StrCat("no group ", spec.tag, "/", RoleName(spec.role), spec.part.empty() ? "" : "/",
                     spec.part, spec.refill != nullptr ? " (refilled)" : ""));
  }
  ArenaGroup& group = groups_[g];
  if (group.sealed) {
    return MakeError({.kind = ErrorKind::kLocked, .object = spec.name},
                     absl::StrCat("group ", GroupName(group.spec), " is sealed"));
  }
  // Extents begin at a multiple of the granularity, so aligning the offset aligns the address.
  const std::uint64_t offset = AlignUp(group.reserved_bytes, spec.alignment);
  const std::uint64_t left = offset < group.extent.bytes ? group.extent.bytes - offset : 0;
  if (spec.bytes > left) {
    return MakeError(
        {.kind = ErrorKind::kOutOfExtent, .object = spec.name, .need = spec.bytes, .have = left},
        absl::StrCat("group ", GroupName(group.spec), " was planned for ",
                     FormatBytes(group.extent.bytes)));
  }

  std::lock_guard<std::mutex> lock(mutex_);
  const SpanId id{static_cast<std::uint32_t>(spans_.size())};
  if (!by_name_.emplace(spec.name, id).second) {
    return MakeError({.kind = ErrorKind::kAlreadyExists, .object = spec.name},
                     "a span of this name exists");
  }
  const AddressRange range{group.extent.base + offset, spec.bytes};
  group.reserved_bytes = offset + spec.bytes;
  by_address_.emplace(range.base.value, id);
  spans_.push_back({std::move(spec), range});
  span_group_.push_back(g);
  undefined_.push_back(false);
  return id;
}

absl::StatusOr<const HostSpan*> Arena::AddHostSpan(std::string name, std::uint64_t bytes) {
  if (name.empty()) return Invalid("host span", "empty name");
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::unique_ptr<HostSpan>& span : host_spans_) {
    if (span->name == name) {
      return MakeError({.kind = ErrorKind::kAlreadyExists, .object = name},
                       "a host span of this name exists");
    }
  }
  absl::StatusOr<HostBuffer> buffer = device_.AllocateHost(bytes);
  if (!buffer.ok()) return Annotate(buffer.status(), "host span " + name);
  auto span = std::make_unique<HostSpan>(HostSpan{std::move(name), *std::move(buffer)});
  const HostSpan* raw = span.get();
  host_by_address_.emplace(reinterpret_cast<std::uint64_t>(raw->buffer.data()), raw);
  host_spans_.push_back(std::move(span));
  return raw;
}

}  // namespace holdfast
