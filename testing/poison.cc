#include "testing/poison.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace holdfast::testing {

absl::Status PoisonScratch(Subject& subject) {
  Arena& arena = subject.arena();
  const std::vector<SpanInfo> spans = arena.spans();
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    const SpanSpec& spec = spans[i].spec;
    if (spec.name.empty() || spec.role != Role::kScratch || arena.asleep(spec.tag)) continue;
    const std::uint64_t bytes = std::min(spans[i].range.bytes, arena.committed_bytes({i}));
    if (bytes == 0) continue;
    HOLDFAST_RETURN_IF_ERROR(
        arena.device().Fill(subject.lane().stream(), spans[i].range.base, 0xFF, bytes));
  }
  return subject.lane().Synchronize();
}

}  // namespace holdfast::testing
