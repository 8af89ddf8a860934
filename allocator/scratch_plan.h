// Offsets for scratch buffers whose lifetimes are known: the smallest arena that holds them all.
//
// Dynamic storage allocation: minimum height, NP-complete. Two buffers may share memory only if
// every operation that may touch one is over before any that may touch the other begins. For a step
// on one stream that compares intervals of operations; where a step forks it is reachability, and a
// programmatic start, which overlaps what is before it, extends lifetimes. Greedy in several
// orders, then a bounded search (scratch_packing.h); on transformer steps it reaches the lower
// bound.
#ifndef HOLDFAST_ALLOCATOR_SCRATCH_PLAN_H_
#define HOLDFAST_ALLOCATOR_SCRATCH_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/operation_order.h"

namespace holdfast {

inline constexpr std::uint64_t kScratchAlignment = 256;

struct ScratchRequest {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t first = 0;  // ordinal of the first operation that may touch it
  std::uint64_t last = 0;   // and of the last; first <= last

  // Only for steps whose operations may run side by side (OperationOrder); empty otherwise: the
  // last operation of each stream that may touch it, and what is over before the first one begins.
  OperationClock latest, over_before;

  bool Overlaps(const ScratchRequest& o) const { return first <= o.last && o.first <= last; }
  // True if the two must not share memory.
  bool Conflicts(const ScratchRequest& o) const {
    if (Overlaps(o)) return true;
    if (latest.empty() || o.latest.empty()) return false;
    return last < o.first ? !ClockCovers(o.over_before, latest)
                          : !ClockCovers(over_before, o.latest);
  }
};

struct ScratchPlan {
  std::vector<ScratchRequest> requests;  // in the order they were asked for
  std::vector<std::uint64_t> offsets;    // multiples of kScratchAlignment, one a request
  std::uint64_t height = 0;              // bytes the plan takes
  std::uint64_t lower_bound = 0;         // no plan can take less: the most bytes alive at once
  std::uint64_t sum = 0;                 // bytes without any sharing
  std::uint64_t order = 0;               // OperationOrder::fingerprint() of the measured step
  std::uint64_t operations = 0;          // that the step enqueues

  // Height over lower bound, >= 1; 1 for a plan without buffers.
  double ratio() const {
    if (lower_bound == 0) return 1;
    return static_cast<double>(height) / static_cast<double>(lower_bound);
  }
};

// Plans the requests. kInvalidArgument if a lifetime is reversed or a size overflows. Zero-byte
// requests get offset 0.
absl::StatusOr<ScratchPlan> PlanScratch(std::vector<ScratchRequest> requests);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_SCRATCH_PLAN_H_
