#include <cuda_runtime_api.h>

#include "tests/testing/plugins/good.h"

__global__ void GoodKernel(const good_params p) {
  const auto row = static_cast<int32_t>(blockIdx.x), column = static_cast<int32_t>(threadIdx.x);
  good_cell(&p, row, column);
  if (row == 0 && column == 0) ++*p.counter;
}

extern "C" int32_t good_launch(const void* params, const uint32_t grid[3], const uint32_t block[3],
                               uint32_t shared_bytes, void* cu_stream) {
  void* arguments[] = {const_cast<void*>(params)};
  return static_cast<int32_t>(cudaLaunchKernel(reinterpret_cast<const void*>(GoodKernel),
                                               dim3(grid[0], grid[1], grid[2]),
                                               dim3(block[0], block[1], block[2]), arguments,
                                               shared_bytes, static_cast<cudaStream_t>(cu_stream)));
}
