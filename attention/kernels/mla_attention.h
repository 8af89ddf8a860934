// Absorbed multi-head latent attention over a paged cache: every query row attends to the first
// kv_length keys of its sequence. One kernel serves decode (one row a sequence) and prefill
// (several rows of a sequence, each with its own causal length); the new tokens' keys are in the
// cache already.
//
//   key j of a sequence: c_j (latent) and k_j (rope), together kv_width = latent + rope elements
//   s_j = scale * (q . [c_j | k_j]);  p = softmax(s);  out = sum_j p_j c_j;  lse = ln sum_j
//   exp(s_j)
// (DeepSeek-V2, arXiv 2405.04434, section 2.1: the up-projections are absorbed into q and into the
// output.)
//
// Rows with kv_length 0 are pads: out = 0, lse = -inf, nothing of the cache is read. Each row's
// result is a function of that row alone, bit for bit, whatever the other rows hold.
#ifndef HOLDFAST_ATTENTION_KERNELS_MLA_ATTENTION_H_
#define HOLDFAST_ATTENTION_KERNELS_MLA_ATTENTION_H_

#include <cstdint>

#include "device/dtype.h"
#include "device/op.h"

namespace holdfast {

struct MlaAttentionParams {
  const void* q;                      // (rows, heads, latent + rope) T
  const void* cache;                  // pages of T; see page_stride
  void* out;                          // (rows, heads, latent) T
  float* lse;                         // (rows, heads), natural log; may be null
  const std::int32_t* block_table;    // (sequences, table_stride): page numbers
  const std::int32_t* row_sequence;   // (rows): row of block_table
  const std::int32_t* row_kv_length;  // (rows): keys this row sees; 0 = pad
  std::int64_t
      page_stride;  // elements from one page to the next (all layers of a page lie together)
  std::int64_t
      layer_offset;  // elements from a page's start to this layer's (page_tokens, latent + rope)
  std::int32_t rows, heads, latent, rope;
  std::int32_t page_tokens;
  std::int32_t table_stride;
  float scale;  // mandatory: (qk_nope + qk_rope)^-0.5 of the un-absorbed head
};

// T = f32 or bf16; accumulation in f32. rows >= 1; latent and rope are multiples of 8, latent <=
// 512, rope <= 64; q, cache and out are 16-byte aligned, page_stride and layer_offset multiples
// of 8.
const Op& MlaAttentionOp(DType type);
LaunchShape MlaAttentionShape(const MlaAttentionParams& params, DType type);

// The CUDA twins: addresses of __global__ functions.
const void* MlaAttentionF32Cuda();
const void* MlaAttentionBf16Cuda();

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_KERNELS_MLA_ATTENTION_H_
