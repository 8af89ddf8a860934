// Private to allocator/: placing buffers of known size and conflicts one above the other.
#ifndef HOLDFAST_ALLOCATOR_SCRATCH_PACKING_H_
#define HOLDFAST_ALLOCATOR_SCRATCH_PACKING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/scratch_plan.h"

namespace holdfast {

// A request as the packing sees it: size rounded up, so that every offset stays aligned.
struct PackItem {
  std::uint64_t bytes = 0;  // > 0
  std::size_t index = 0;    // of the request
};

struct Packing {
  std::vector<std::uint64_t> offsets;  // by request
  std::uint64_t height = 0;
};

// The lowest packing found: several greedy orders, then a local search of bounded work for what
// stays above `lower_bound`. A function of its arguments alone. At least one item.
Packing PackScratch(const std::vector<ScratchRequest>& requests, std::vector<PackItem> items,
                    std::uint64_t lower_bound);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_SCRATCH_PACKING_H_
