// Giving a span up: its name at once, its pages where whole chunks hold nothing else.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/arena.h"
#include "allocator/reopen_at_end.h"
#include "device/error.h"

namespace holdfast {

absl::Status Arena::Free(SpanId span, AdmissionGate::Deadline deadline) {
  std::lock_guard<std::mutex> transition(transition_mutex_);
  const SpanInfo info = this->span(span);
  const std::string& name = info.spec.name;
  if (name.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name_}, "no such span");
  }
  if (locked()) {
    return MakeError({.kind = ErrorKind::kLocked, .object = name}, "the arena is locked");
  }
  const std::size_t g = FindGroup(info.spec);
  if (groups_[g].asleep) {
    return MakeError({.kind = ErrorKind::kAsleep, .object = name},
                     absl::StrCat("tag ", info.spec.tag, " is asleep"));
  }
  if (const std::optional<RegisteredHolder> held = registrations_.HolderOf(span)) {
    return MakeError({.kind = ErrorKind::kHeld, .object = name},
                     absl::StrCat("registered by ", held->registration.holder, " (",
                                  HolderKindName(held->registration.kind), ")"));
  }
  HOLDFAST_RETURN_IF_ERROR(
      Annotate(gate_.CloseAndDrain(device_, deadline), absl::StrCat("free of ", name)));
  ReopenAtEnd reopen(gate_);
  ForgetSpan(span);
  frees_.fetch_add(1, std::memory_order_acq_rel);
  BumpEpoch();  // a graph that refers to the span has to look again
  ShrinkGroupTo(g, LiveEnd(g));
  return Annotate(RemoveOrphans(),
                  absl::StrCat(name, " is freed, but not all of its pages are given back yet"));
}

void Arena::ForgetSpan(SpanId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  SpanInfo& info = spans_[id.index];
  by_name_.erase(info.spec.name);
  by_address_.erase(info.range.base.value);
  if (undefined_[id.index]) {
    undefined_[id.index] = false;
    --undefined_in_group_[span_group_[id.index]];
  }
  info = {};
}

std::uint64_t Arena::LiveEnd(std::size_t group) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::uint64_t end = 0;
  for (std::size_t s = 0; s < spans_.size(); ++s) {
    if (span_group_[s] != group || spans_[s].spec.name.empty()) continue;
    end = std::max(end, spans_[s].range.end() - groups_[group].extent.base);
  }
  return end;
}

}  // namespace holdfast
