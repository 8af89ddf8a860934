// What decides an attention backend's needs: limits of the run, the model's shape on this rank, the
// cache, parallelism, and the device. Known before any memory is touched.
#ifndef HOLDFAST_ATTENTION_ATTENTION_CONFIG_H_
#define HOLDFAST_ATTENTION_ATTENTION_CONFIG_H_

#include <cstdint>

#include "device/dtype.h"

namespace holdfast {

enum class GpuArch { kSm90, kSm100 };
const char* GpuArchName(GpuArch arch);  // "sm90", "sm100"

// Counts are 64-bit so that products of a few of them can be checked in one place. Backends refuse
// values outside their range, naming field, value and limit.
struct AttentionConfig {
  // Limits of the run
  std::int64_t max_batched_tokens = 0;  // rows of one pass (T)
  std::int64_t max_sequences = 0;       // decoded together (S)
  std::int64_t max_model_len = 0;       // longest sequence, in tokens (L)
  std::int64_t draft_tokens = 0;        // proposed ahead of a verified one (K)

  // The model's shape on this rank
  std::int64_t heads = 0;           // query heads (H); value heads for gated_delta_net
  std::int64_t key_heads = 0;       // gated_delta_net only
  std::int64_t latent = 512;        // shared key and value elements; head size for gated_delta_net
  std::int64_t rope = 64;           // further key elements
  std::int64_t topk = 2048;         // keys a sparse row reads
  std::int64_t window = 128;        // keys a windowed row reads, itself included
  std::int64_t compress_ratio = 1;  // tokens to one compressed key; <= 1: none are kept

  // The cache
  std::int64_t page_tokens = 64;
  DType type = DType::kBF16;  // of activations, and of an unquantised cache
  bool quantized = false;     // fp8 cache

  // Parallelism
  std::int64_t prefill_ranks = 1;  // ranks that share a prefill's context (PCP)
  std::int64_t decode_ranks = 1;   // ranks that share a sequence's cache (DCP, W)
  bool hisparse = false;           // top-k served from host memory: never the mixed batch

  // The device, and what the kernels do with it
  GpuArch arch = GpuArch::kSm90;
  std::int64_t sms = 132;
  std::int64_t split_parts = 1;  // parts the split-KV planner cuts a step into; 1: it never splits
  std::int64_t prefill_factor = 5;  // context of a sparse prefill group, in max_model_len
  // Off, a declaration asks for the buffers of every path, as if nothing said which is taken: what
  // path gating saves is the difference.
  bool path_gating = true;
};

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_ATTENTION_CONFIG_H_
