#include "graphs/staging_ring.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<StagingRing>> StagingRing::Create(Lane& lane,
                                                                 const std::string& name,
                                                                 std::uint64_t bytes, int slots) {
  if (slots < 1) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name},
                     absl::StrCat(slots, " slots; at least 1 is needed"));
  }
  std::unique_ptr<StagingRing> ring(new StagingRing(lane));
  for (int i = 0; i < slots; ++i) {
    Slot slot;
    HOLDFAST_ASSIGN_OR_RETURN(slot.copied, lane.device().CreateEvent());
    HOLDFAST_ASSIGN_OR_RETURN(slot.span,
                              lane.arena().AddHostSpan(absl::StrCat(name, ".", i), bytes));
    ring->slots_.push_back(std::move(slot));
  }
  return ring;
}

absl::StatusOr<std::byte*> StagingRing::Acquire(std::chrono::steady_clock::time_point deadline) {
  const Slot& slot = slots_[next_];
  if (!acquired_) {
    const absl::Status copied = lane_.device().SynchronizeBy(*slot.copied, deadline);
    HOLDFAST_RETURN_IF_ERROR(Annotate(copied, slot.span->name));
    acquired_ = true;
  }
  return slot.span->buffer.data();
}

absl::Status StagingRing::Send(DeviceAddress to, std::uint64_t bytes) {
  const Slot& slot = slots_[next_];
  if (!acquired_ || bytes > slot.span->buffer.size()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = slot.span->name,
                      .need = bytes,
                      .have = slot.span->buffer.size()},
                     acquired_ ? "more than the slot holds" : "the slot was not acquired");
  }
  Arena& arena = lane_.arena();
  const absl::StatusOr<AdmissionGate::Pass> pass = arena.gate().Enter();
  if (!pass.ok()) return Annotate(pass.status(), slot.span->name);
  if (const std::optional<SpanHit> hit = arena.Locate(to); hit.has_value()) {
    const absl::Status ready = arena.CheckReady({arena.span(hit->span).spec.tag});
    HOLDFAST_RETURN_IF_ERROR(Annotate(ready, slot.span->name));
  }
  HOLDFAST_RETURN_IF_ERROR(
      lane_.device().CopyToDevice(lane_.stream(), to, slot.span->buffer.data(), bytes));
  const absl::Status marked = lane_.device().Record(*slot.copied, lane_.stream());
  // Without the mark nobody would know when the slot is free.
  if (!marked.ok()) lane_.Synchronize().IgnoreError();
  acquired_ = false;
  next_ = (next_ + 1) % slots_.size();
  return marked;
}

}  // namespace holdfast
