// Pages taken back from the end of a span, while it stays where it is.
#include <optional>

#include "absl/strings/str_cat.h"
#include "allocator/arena.h"
#include "allocator/arena_layout.h"
#include "allocator/reopen_at_end.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::uint64_t> Arena::Uncommit(SpanId span, std::uint64_t keep_bytes,
                                              AdmissionGate::Deadline deadline) {
  std::lock_guard<std::mutex> transition(transition_mutex_);
  HOLDFAST_ASSIGN_OR_RETURN(const GroupEnd kept, EndOf({span, keep_bytes}));
  ArenaGroup& group = groups_[kept.group];
  const std::string name = this->span(span).spec.name;
  if (group.asleep) {
    return MakeError({.kind = ErrorKind::kAsleep, .object = name},
                     absl::StrCat("tag ", group.spec.tag, " is asleep"));
  }
  if (group.sealed) {
    return MakeError({.kind = ErrorKind::kLocked, .object = name},
                     absl::StrCat("group ", GroupName(group.spec), " is sealed"));
  }
  const std::uint64_t cut = FirstChunkFrom(kept.group, kept.end);
  if (cut == group.committed_bytes) return 0;
  HOLDFAST_RETURN_IF_ERROR(
      CheckAlone(span, {group.extent.base + cut, group.committed_bytes - cut}));
  HOLDFAST_RETURN_IF_ERROR(
      Annotate(gate_.CloseAndDrain(device_, deadline), absl::StrCat("shrinking ", name)));
  ReopenAtEnd reopen(gate_);
  BumpEpoch();  // a graph that refers to the span has to look again
  const std::uint64_t given_back = ShrinkGroupTo(kept.group, cut);
  HOLDFAST_RETURN_IF_ERROR(Annotate(
      RemoveOrphans(), absl::StrCat(name, " is cut, but not all of its pages are given back yet")));
  return given_back;
}

absl::Status Arena::CheckAlone(SpanId span, AddressRange pages) const {
  {
    std::lock_guard<std::mutex> lock(mutex_);

    for (const auto& [address, other] : by_address_) {
      const AddressRange& range = spans_[other.index].range;
      if (other == span || range.end() <= pages.base || range.base >= pages.end()) continue;
      return MakeError(
          {.kind = ErrorKind::kHeld, .object = spans_[span.index].spec.name},
          absl::StrCat("its last pages are also those of ", spans_[other.index].spec.name));
    }
  }
  if (const std::optional<RegisteredHolder> held = registrations_.HolderOf(span)) {
    return MakeError({.kind = ErrorKind::kHeld, .object = this->span(span).spec.name},
                     absl::StrCat("registered by ", held->registration.holder, " (",
                                  HolderKindName(held->registration.kind), ")"));
  }
  return absl::OkStatus();
}

}  // namespace holdfast
