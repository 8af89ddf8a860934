#include "graphs/compare.h"
#include "graphs/graph.h"

namespace holdfast {

absl::StatusOr<ShiftReport> Graph::ProveShifted(const GraphView& shifted, std::uint64_t shift) {
  const Arena& arena = lane_.arena();
  HOLDFAST_ASSIGN_OR_RETURN(const GraphView base, captured_->View());
  ShiftReport report =
      CompareShifted(base, manifest_.audit, shifted, shift, &arena, &arena.device());
  AddPacked(manifest_, report.packed, arena);
  if (!report.packed.empty()) verified_epoch_.store(0, std::memory_order_relaxed);
  return report;
}

}  // namespace holdfast
