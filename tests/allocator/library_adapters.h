// Steps that call CUB, Thrust and cuBLASLt through the adapters. Defined where CUDA is built.
#ifndef HOLDFAST_TESTS_ALLOCATOR_LIBRARY_ADAPTERS_H_
#define HOLDFAST_TESTS_ALLOCATOR_LIBRARY_ADAPTERS_H_

#include <cstddef>
#include <cstdint>

#include "allocator/step_context.h"

namespace holdfast {

// out[i] = in[0] + ... + in[i]
absl::Status CubInclusiveSum(StepContext& step, const std::uint32_t* in, std::uint32_t* out,
                             int count);
// Sorts in place, with at most `bytes` of temporary storage.
absl::Status ThrustSort(StepContext& step, std::uint32_t* data, int count, std::size_t bytes);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_ALLOCATOR_LIBRARY_ADAPTERS_H_
