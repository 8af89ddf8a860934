#include <thrust/sort.h>

#include <cub/device/device_scan.cuh>

#include "allocator/adapters/cub.h"
#include "allocator/adapters/cublaslt.h"
#include "allocator/adapters/thrust.h"
#include "tests/allocator/library_adapters.h"

namespace holdfast {

absl::Status CubInclusiveSum(StepContext& step, const std::uint32_t* in, std::uint32_t* out,
                             int count) {
  return WithCubStorage(step, "scan", [&](void* storage, std::size_t& bytes, cudaStream_t stream) {
    return cub::DeviceScan::InclusiveSum(storage, bytes, in, out, count, stream);
  });
}

absl::Status ThrustSort(StepContext& step, std::uint32_t* data, int count, std::size_t bytes) {
  return WithThrust(step, "sort", bytes,
                    [&](const auto& policy) { thrust::sort(policy, data, data + count); });
}

}  // namespace holdfast
