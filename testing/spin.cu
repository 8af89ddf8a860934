#include "testing/spin.h"

namespace holdfast::testing {
namespace {

__device__ std::uint64_t Nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void SpinKernel(SpinParams p) {
  const std::uint64_t end = Nanoseconds() + p.microseconds * 1000;
  while (Nanoseconds() < end) {
  }
}

}  // namespace

const void* SpinCuda() { return reinterpret_cast<const void*>(&SpinKernel); }

}  // namespace holdfast::testing
