// The element-wise and row-wise kernels of a dense layer. T is the activation type (f32 or bf16);
// the residual stream is f32. Each output row depends on its own input row alone. Counts of rows
// and elements are >= 1.
#ifndef HOLDFAST_RUNTIME_KERNELS_DENSE_H_
#define HOLDFAST_RUNTIME_KERNELS_DENSE_H_

#include <cstdint>

#include "device/dtype.h"
#include "device/op.h"

namespace holdfast {

// out[r] = table[tokens[r]]; a token outside [0, vocab) gives a row of zeros (pads are -1).
struct EmbedParams {
  const std::int32_t* tokens;  // (rows)
  const void* table;           // (vocab, width) T
  float* out;                  // (rows, width)
  std::int32_t rows, width, vocab;
};
const Op& EmbedOp(DType type);
LaunchShape EmbedShape(const EmbedParams& params);

// out[r] = x / sqrt(mean(x^2) + eps) * weight with x = in[row_index[r]] (in[r] if row_index is
// null); an index of -1 gives a row of zeros. (Zhang and Sennrich 2019, arXiv 1910.07467.)
struct RmsNormParams {
  const float* in;                // rows of `width`, in_stride elements apart
  const void* weight;             // (width) T
  void* out;                      // (rows, width) T, out_stride elements apart
  const std::int32_t* row_index;  // (rows) or null
  std::int64_t in_stride, out_stride;
  std::int32_t rows, width;
  float epsilon;
};
const Op& RmsNormOp(DType type);
LaunchShape RmsNormShape(const RmsNormParams& params);

// out = silu(gate) * up, element by element; silu(x) = x / (1 + exp(-x)).
struct SiluMulParams {
  const void* gate;  // (count) T
  const void* up;    // (count) T
  void* out;         // (count) T
  std::int64_t count;
};
const Op& SiluMulOp(DType type);
LaunchShape SiluMulShape(const SiluMulParams& params);

// The CUDA twins: addresses of __global__ functions.
const void* EmbedF32Cuda();
const void* EmbedBf16Cuda();
const void* RmsNormF32Cuda();
const void* RmsNormBf16Cuda();
const void* SiluMulF32Cuda();
const void* SiluMulBf16Cuda();

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_DENSE_H_
