#include "allocator/restore_dropped.h"

#include <algorithm>
#include <cstdint>
#include <vector>

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
AddressRange CommittedPart(const ArenaGroup& group, AddressRange span) {
  const DeviceAddress end = group.extent.base + group.committed_bytes;
  if (span.base >= end) return {span.base, 0};
  return {span.base, std::min(span.bytes, end - span.base)};
}

// Spans come in address order, so neighbours of one value become one run.
std::vector<FillRun> FillRuns(const ArenaGroup& group, const std::vector<SpanContents>& spans) {
  std::vector<FillRun> runs;
  bool joinable = false;  // no unfilled span lies between the last run and here
  for (const SpanContents& span : spans) {
    const AddressRange part = CommittedPart(group, span.range);
    if (part.bytes == 0) continue;
    if (!IsFilled(span.wake_contents)) {
      joinable = false;
      continue;
    }
    const std::uint8_t value = span.wake_contents == WakeContents::kPoison ? 0xFF : 0;
    if (joinable && runs.back().value == value) {
      runs.back().range.bytes = part.end() - runs.back().range.base;
    } else {
      runs.push_back({part, value});
    }
    joinable = true;
  }
  return runs;
}

// Replays need no contents of scratch, and a refill hook has just written its span.
bool ComesBackUndefined(const ArenaGroup& group, const SpanContents& span) {
  return CommittedPart(group, span.range).bytes > 0 && !IsFilled(span.wake_contents) &&
         group.spec.role != Role::kScratch && !span.refilled;
}

}  // namespace

bool NeedsContents(const ArenaGroup& group) { return group.dropped() && AnyLost(group); }

absl::Status EnqueueFills(Transition& t, std::size_t g) {
  for (const FillRun& run : FillRuns(t.group(g), t.arena().ContentsOf(g))) {
    HOLDFAST_RETURN_IF_ERROR(
        t.device().Fill(*t.state.fills, run.range.base, run.value, run.range.bytes));
  }
  return absl::OkStatus();
}

absl::Status CallRefills(Transition& t, std::size_t g) {
  bool any = false;
  for (const SpanContents& span : t.arena().ContentsOf(g)) {
    if (!span.refilled) continue;
    const AddressRange part = CommittedPart(t.group(g), span.range);
    if (part.bytes == 0) continue;
    any = true;
    const SpanSpec spec = t.arena().span(span.id).spec;
    absl::Status refilled = spec.refill(t.device(), *t.state.fills, part);
    if (!refilled.ok()) return Annotate(refilled, "refill of " + spec.name);
  }
  return any ? t.device().Synchronize(*t.state.fills) : absl::OkStatus();
}

void SettleContents(Transition& t, std::size_t g) {
  ArenaGroup& group = t.group(g);
  if (NeedsContents(group)) {
    for (const SpanContents& span : t.arena().ContentsOf(g)) {
      t.arena().SetUndefined(span.id, ComesBackUndefined(group, span));
    }
  }
  for (ArenaChunk& chunk : group.chunks) chunk.lost = false;
}

}  // namespace holdfast
