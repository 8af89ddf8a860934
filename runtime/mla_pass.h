// One captured shape of the MLA model: the sequence of kernels and matrix products from tokens to
// logits.
#ifndef HOLDFAST_RUNTIME_MLA_PASS_H_
#define HOLDFAST_RUNTIME_MLA_PASS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "attention/mla_backend.h"
#include "runtime/hf_config.h"
#include "runtime/mla_weights.h"
#include "runtime/model.h"

namespace holdfast {

// Pointers must outlive the pass.
struct MlaPassSpec {
  const MlaConfig* config = nullptr;
  DType type = DType::kF32;
  const MlaBackend* attention = nullptr;
  const MlaWeights* weights = nullptr;
  SpanId rope_table;
  KvSpec kv;
  BatchShape shape;
  bool deterministic = false;
};

// Without a device the pass can only be measured: the workspaces of its matrix products are
// estimates (dry_gemm.h).
absl::StatusOr<std::unique_ptr<ModelPass>> PlanMlaPass(Device* device, const MlaPassSpec& spec);

// At least what the scratch plan of such a pass can come to: all buffers of one layer side by side.
std::uint64_t MlaScratchBound(const MlaConfig& config, DType type, const BatchShape& shape);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_MLA_PASS_H_
