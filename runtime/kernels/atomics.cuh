// 64-bit atomics on the words of the synthetic ops. All are sums and maxima: any order of threads
// gives the same.
#ifndef HOLDFAST_RUNTIME_KERNELS_ATOMICS_CUH_
#define HOLDFAST_RUNTIME_KERNELS_ATOMICS_CUH_

#include <cstdint>

#include "runtime/kernels/pattern.h"

namespace holdfast {

__device__ inline void AtomicAdd(std::uint64_t* to, std::uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
}

// Puts a wrong word, `at` bytes into the buffer, down under its fault and in the step's digest.
__device__ inline void Blame(PatternFault* fault, std::uint64_t* digest, std::uint64_t at,
                             std::uint64_t seen, std::uint64_t wanted) {
  AtomicAdd(&fault->differing, 1);
  atomicMax(reinterpret_cast<unsigned long long*>(&fault->first_from_end),
            static_cast<unsigned long long>(~at));
  AtomicAdd(digest, PatternBlame(seen, wanted));
}

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_ATOMICS_CUH_
