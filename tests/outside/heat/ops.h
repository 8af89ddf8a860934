// The kernels of the heat program: rods that are closed to rings, warmed by sources. Each is there
// twice: for a GPU (ops.cu) and for the host device (ops.cc). Plain C++, so that nvcc needs nothing
// of holdfast.
#ifndef HOLDFAST_TESTS_OUTSIDE_HEAT_OPS_H_
#define HOLDFAST_TESTS_OUTSIDE_HEAT_OPS_H_

#include <cstdint>

namespace heat {

inline constexpr std::int32_t kCells = 32;  // of one rod

// flow[r][i] = conductivity[i] * (warmth[r][i] - warmth[r][i + 1]), 0 for pads (r >= *real).
struct FlowParams {
  const float* warmth;        // (rods, kCells)
  const float* conductivity;  // (kCells)
  float* flow;                // (rods, kCells)
  const std::int32_t* real;   // one: how many rods are real
  std::int32_t rods;
  std::int32_t adds_to_scratch;  // planted: adds to what `flow` held before
  std::int32_t pads_count;       // planted: the last rod warms all others, pad or not
  std::int32_t zero = 0;         // in place of padding, which is noise in a captured word
};

// warmth[r][i] += flow[r][i - 1] - flow[r][i] + sources[i], 0 for pads; log = warmth; ++*steps.
struct SettleParams {
  const float* flow;         // (rods, kCells)
  const float* sources;      // (kCells)
  float* warmth;             // (rods, kCells)
  float* log;                // (rods, kCells)
  std::uint64_t* steps;      // one
  const std::int32_t* real;  // one
  std::int32_t rods;
  std::int32_t zero = 0;  // in place of padding
};

void FlowHost(const FlowParams& params);
void SettleHost(const SettleParams& params);

// Where nvcc is.
const void* FlowCuda();
const void* SettleCuda();
// The same kernels, launched: what the plug-in does by itself. They return what the CUDA runtime
// said.
std::int32_t FlowLaunch(const void* params, const std::uint32_t grid[3],
                        const std::uint32_t block[3], std::uint32_t shared_bytes, void* stream);
std::int32_t SettleLaunch(const void* params, const std::uint32_t grid[3],
                          const std::uint32_t block[3], std::uint32_t shared_bytes, void* stream);

}  // namespace heat

#endif  // HOLDFAST_TESTS_OUTSIDE_HEAT_OPS_H_
