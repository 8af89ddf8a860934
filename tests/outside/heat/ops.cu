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

}  // namespace

const void* FlowCuda() { return reinterpret_cast<const void*>(&Flow); }
const void* SettleCuda() { return reinterpret_cast<const void*>(&Settle); }

}  // namespace heat
