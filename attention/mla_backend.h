// The MLA attention backend as the runtime sees it: what it declares, and the call that
// enqueues it.
#ifndef HOLDFAST_ATTENTION_MLA_BACKEND_H_
#define HOLDFAST_ATTENTION_MLA_BACKEND_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/step_context.h"
#include "attention/declaration.h"
#include "attention/kernels/mla_attention.h"

namespace holdfast {

struct MlaBackendConfig {
  std::int32_t heads = 0, latent = 0, rope = 0;
  std::int32_t page_tokens = 64;
  float scale = 0;
  DType type = DType::kF32;
};

class MlaBackend {
 public:
  // kInvalidArgument naming the field for shapes outside the kernel's table.
  static absl::StatusOr<MlaBackend> Create(const MlaBackendConfig& config);

  // What it needs within the limits of a run (max_batched_tokens, max_sequences, max_model_len, and
  // the device); the shape is its own. The plain kernel needs no scratch.
  absl::StatusOr<AttentionDeclaration> Declare(AttentionConfig limits) const;
  const MlaBackendConfig& config() const { return config_; }

  struct Call {
    DeviceAddress q, cache, out, lse;  // see MlaAttentionParams; lse may be null
    DeviceAddress block_table, row_sequence, row_kv_length;
    std::int64_t page_stride = 0, layer_offset = 0;
    std::int32_t rows = 0, table_stride = 0;
  };
  // Enqueues the attention of `call.rows` rows. kInvalidArgument naming argument, value and limit,
  // before anything is enqueued.
  absl::Status Run(StepContext& step, const Call& call) const;

 private:
  explicit MlaBackend(const MlaBackendConfig& config) : config_(config) {}
  MlaBackendConfig config_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_MLA_BACKEND_H_
