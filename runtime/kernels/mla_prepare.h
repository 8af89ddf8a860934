// Between the projections and attention: normalises and stores the new latent keys, and rotates q
// and k.
//
// For each row r with position p = positions[r] and cache slot s = slots[r]:
//   cache[s] = [ rmsnorm(kv[r][0:latent]) * weight | rope(kv[r][latent:], p) ]     (nothing if s <
//   0) q_full[r][h][latent:] = rope(q[r][h][nope:], p)        for every head h
// The first `latent` elements of q_full are written by the absorbing product, not here.
//
// rope over d = rope elements, c_i and s_i from row p of the table, i < d/2:
//   interleaved: out[i] = x[2i] c_i - x[2i+1] s_i, out[i + d/2] = x[2i+1] c_i + x[2i] s_i
//   halves:      out[i] = x[i] c_i - x[i+d/2] s_i, out[i + d/2] = x[i+d/2] c_i + x[i] s_i
// (Su et al. 2021, arXiv 2104.09864; both store halves, as the Hugging Face model does.)
#ifndef HOLDFAST_RUNTIME_KERNELS_MLA_PREPARE_H_
#define HOLDFAST_RUNTIME_KERNELS_MLA_PREPARE_H_

#include <cstdint>

#include "device/dtype.h"
#include "device/op.h"

namespace holdfast {

struct MlaPrepareParams {
  const float* kv;                // (rows, latent + rope)
  const void* weight;             // (latent) T
  const void* q;                  // (rows, heads, nope + rope) T
  void* q_full;                   // (rows, heads, latent + rope) T
  void* cache;                    // pages of T, as in attention/kernels/mla_attention.h
  const std::int32_t* positions;  // (rows), rows of the table: pads too
  const std::int64_t* slots;  // (rows): page * page_tokens + offset in the page; < 0 writes nothing
  const float* rope_table;    // (max_position, rope): rope/2 cosines, then rope/2 sines
  std::int64_t page_stride, layer_offset;  // elements
  std::int32_t rows, heads, latent, nope, rope, page_tokens;
  std::int32_t interleaved;  // 1 or 0
  float epsilon;
};
const Op& MlaPrepareOp(DType type);
LaunchShape MlaPrepareShape(const MlaPrepareParams& params);

// The CUDA twins: addresses of __global__ functions.
const void* MlaPrepareF32Cuda();
const void* MlaPrepareBf16Cuda();

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_MLA_PREPARE_H_
