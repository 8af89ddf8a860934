// Offsets for scratch buffers whose lifetimes are known: the smallest arena that holds them all.
//
// Dynamic storage allocation: intervals [first, last] with sizes, minimum height. Greedy by size,
// best fit over the free gaps; on transformer steps it reaches the lower bound (the most bytes
// alive at once).
#ifndef HOLDFAST_ALLOCATOR_SCRATCH_PLAN_H_
#define HOLDFAST_ALLOCATOR_SCRATCH_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast {

inline constexpr std::uint64_t kScratchAlignment = 256;

struct ScratchRequest {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t first = 0;  // ordinal of the first operation that may touch it
  std::uint64_t last = 0;   // and of the last; first <= last

  bool Overlaps(const ScratchRequest& o) const { return first <= o.last && o.first <= last; }
};

struct ScratchPlan {
  std::vector<ScratchRequest> requests;  // in the order they were asked for
  std::vector<std::uint64_t> offsets;    // multiples of kScratchAlignment, one a request
  std::uint64_t height = 0;              // bytes the plan takes
  std::uint64_t lower_bound = 0;         // no plan can take less: the most bytes alive at once
  std::uint64_t sum = 0;                 // bytes without any sharing
};

// Plans the requests. kInvalidArgument if a lifetime is reversed or a size overflows. Zero-byte
// requests get offset 0.
absl::StatusOr<ScratchPlan> PlanScratch(std::vector<ScratchRequest> requests);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_SCRATCH_PLAN_H_
