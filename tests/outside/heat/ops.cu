#include "heat/ops.h"

namespace heat {
namespace {

// One block a rod, one thread a cell.
__global__ void Flow(FlowParams p) {
  const int r = blockIdx.x, i = threadIdx.x, next = (i + 1) % kCells;
  const float* warmth = p.warmth + r * kCells;
  float flow = 0;
  if (r < *p.real) flow = p.conductivity[i] * (warmth[i] - warmth[next]);
  if (p.adds_to_scratch) flow += p.flow[r * kCells + i];
  if (p.pads_count) flow += p.warmth[(p.rods - 1) * kCells + i];
  p.flow[r * kCells + i] = flow;
}

__global__ void Settle(SettleParams p) {
  const int r = blockIdx.x, i = threadIdx.x, before = (i + kCells - 1) % kCells;
  const float* flow = p.flow + r * kCells;
  const int at = r * kCells + i;
  p.warmth[at] = r < *p.real ? p.warmth[at] + flow[before] - flow[i] + p.sources[i] : 0;
  p.log[at] = p.warmth[at];
  if (at == 0) ++*p.steps;
}

template <typename Params>
std::int32_t Launch(void (*kernel)(Params), const void* params, const std::uint32_t grid[3],
                    const std::uint32_t block[3], std::uint32_t shared_bytes, void* stream) {
  kernel<<<dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2]), shared_bytes,
           static_cast<cudaStream_t>(stream)>>>(*static_cast<const Params*>(params));
  return cudaGetLastError();
}

}  // namespace

const void* FlowCuda() { return reinterpret_cast<const void*>(&Flow); }
const void* SettleCuda() { return reinterpret_cast<const void*>(&Settle); }

std::int32_t FlowLaunch(const void* params, const std::uint32_t grid[3],
                        const std::uint32_t block[3], std::uint32_t shared_bytes, void* stream) {
  return Launch(&Flow, params, grid, block, shared_bytes, stream);
}
std::int32_t SettleLaunch(const void* params, const std::uint32_t grid[3],
                          const std::uint32_t block[3], std::uint32_t shared_bytes, void* stream) {
  return Launch(&Settle, params, grid, block, shared_bytes, stream);
}

}  // namespace heat
