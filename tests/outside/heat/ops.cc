#include "heat/ops.h"

namespace heat {

void FlowHost(const FlowParams& p) {
  for (std::int32_t r = 0; r < p.rods; ++r) {
    const float* warmth = p.warmth + r * kCells;
    for (std::int32_t i = 0; i < kCells; ++i) {
      float flow = 0;
      if (r < *p.real) flow = p.conductivity[i] * (warmth[i] - warmth[(i + 1) % kCells]);
      if (p.adds_to_scratch) flow += p.flow[r * kCells + i];
      if (p.pads_count) flow += p.warmth[(p.rods - 1) * kCells + i];
      p.flow[r * kCells + i] = flow;
    }
  }
}

void SettleHost(const SettleParams& p) {
  for (std::int32_t r = 0; r < p.rods; ++r) {
    const float* flow = p.flow + r * kCells;
    for (std::int32_t i = 0; i < kCells; ++i) {
      float& warmth = p.warmth[r * kCells + i];
      const float in = flow[(i + kCells - 1) % kCells] + p.sources[i];
      warmth = r < *p.real ? warmth + in - flow[i] : 0;
      p.log[r * kCells + i] = warmth;
    }
  }
  ++*p.steps;
}

}  // namespace heat
