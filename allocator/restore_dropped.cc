// Dropped contents come back as declared: filled, left undefined, or refilled by their owner.
#include <algorithm>
#include <vector>

#include "allocator/transition.h"
#include "device/error.h"

namespace holdfast {
namespace {

// A stretch of a dropped group that comes back with one byte value; padding between its spans
// included.
struct FillRun {
  AddressRange range;
  std::uint8_t value = 0;
};

bool IsFilled(WakeContents contents) { return contents != WakeContents::kUndefined; }

// The part of a span that has pages.
AddressRange CommittedPart(const ArenaGroup& group, const SpanInfo& span) {
  const DeviceAddress end = group.extent.base + group.committed_bytes;
  if (span.range.base >= end) return {span.range.base, 0};
  return {span.range.base, std::min(span.range.bytes, end - span.range.base)};
}

// Spans of a group lie in the order they were reserved in, so neighbours of one value become one
// run.
std::vector<FillRun> FillRuns(const ArenaGroup& group, const std::vector<SpanInfo>& spans) {
  std::vector<FillRun> runs;
  bool joinable = false;  // no unfilled span lies between the last run and here
  for (const SpanInfo& span : spans) {
    if (!group.extent.Contains(span.range.base)) continue;
    const AddressRange part = CommittedPart(group, span);
    if (part.bytes == 0) continue;
    if (!IsFilled(span.spec.wake_contents)) {
      joinable = false;
      continue;
    }
    const std::uint8_t value = span.spec.wake_contents == WakeContents::kPoison ? 0xFF : 0;
    if (joinable && runs.back().value == value) {
      runs.back().range.bytes = part.end() - runs.back().range.base;
    } else {
      runs.push_back({part, value});
    }
    joinable = true;
  }
  return runs;
}

bool NeedsContents(const ArenaGroup& group) { return group.dropped() && AnyLost(group); }

bool AnyNeedsContents(Transition& t) {
  return std::any_of(t.groups.begin(), t.groups.end(),
                     [&](std::size_t g) { return NeedsContents(t.group(g)); });
}

// Replays need no contents of scratch, and a refill hook has just written its span.
bool ComesBackUndefined(const ArenaGroup& group, const SpanInfo& span) {
  return CommittedPart(group, span).bytes > 0 && !IsFilled(span.spec.wake_contents) &&
         span.spec.role != Role::kScratch && span.spec.refill == nullptr;
}

absl::Status FillDropped(Transition& t, const std::vector<SpanInfo>& spans) {
  for (const std::size_t g : t.groups) {
    if (!NeedsContents(t.group(g))) continue;
    for (const FillRun& run : FillRuns(t.group(g), spans)) {
      HOLDFAST_RETURN_IF_ERROR(
          t.device().Fill(t.stream, run.range.base, run.value, run.range.bytes));
    }
  }
  return t.device().Synchronize(t.stream);
}

absl::Status CallRefills(Transition& t, const std::vector<SpanInfo>& spans) {
  for (const std::size_t g : t.groups) {
    const ArenaGroup& group = t.group(g);
    if (!NeedsContents(group)) continue;
    for (const SpanInfo& span : spans) {
      if (span.spec.refill == nullptr || !group.extent.Contains(span.range.base)) continue;
      const AddressRange part = CommittedPart(group, span);
      if (part.bytes == 0) continue;
      absl::Status refilled = span.spec.refill(t.device(), t.stream, part);
      if (!refilled.ok()) return Annotate(refilled, "refill of " + span.spec.name);
    }
  }
  return t.device().Synchronize(t.stream);
}

}  // namespace

absl::Status RestoreDropped(Transition& t) {
  if (!AnyNeedsContents(t)) return absl::OkStatus();
  const std::vector<SpanInfo> spans = t.arena.spans();
  t.clock.Begin("fill");
  HOLDFAST_RETURN_IF_ERROR(FillDropped(t, spans));
  if (t.faults.skip_refill) return absl::OkStatus();
  t.clock.Begin("refill");
  return CallRefills(t, spans);
}

void SettleContents(Transition& t) {
  const std::vector<SpanInfo> spans =
      AnyNeedsContents(t) ? t.arena.spans() : std::vector<SpanInfo>{};
  for (const std::size_t g : t.groups) {
    ArenaGroup& group = t.group(g);
    for (std::uint32_t s = 0; NeedsContents(group) && s < spans.size(); ++s) {
      if (!group.extent.Contains(spans[s].range.base)) continue;
      t.arena.SetUndefined(SpanId{s}, ComesBackUndefined(group, spans[s]));
    }
    for (ArenaChunk& chunk : group.chunks) chunk.lost = false;
  }
}

}  // namespace holdfast
