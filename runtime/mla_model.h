// DeepSeek-V3-style multi-head latent attention with dense feed-forward layers, absorbed in prefill
// and decode. The Hugging Face folder is its provider.
#ifndef HOLDFAST_RUNTIME_MLA_MODEL_H_
#define HOLDFAST_RUNTIME_MLA_MODEL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/mla_backend.h"
#include "runtime/hf_config.h"
#include "runtime/mla_weights.h"
#include "runtime/model.h"
#include "runtime/safetensors.h"

namespace holdfast {

inline constexpr char kTablesTag[] = "tables";

class MlaModel : public Model {
 public:
  // Reads and checks config.json and the tensors' headers; no weight is read yet. `type` is the
  // activation and weight type on the device (kF32, kBF16).
  static absl::StatusOr<std::unique_ptr<MlaModel>> Open(const std::string& folder, DType type);

  const MlaConfig& config() const { return config_; }
  DType type() const { return type_; }

  const ModelLimits& limits() const override { return limits_; }
  KvSpec kv() const override;
  std::vector<GroupSpec> groups() const override;
  std::uint64_t ScratchBound(const BatchShape& shape) const override;
  absl::Status ReserveSpans(Arena& arena) override;
  absl::Status Load(Arena& arena, const LoadOptions& options) override;
  absl::StatusOr<std::unique_ptr<ModelPass>> PlanPass(const BatchShape& shape,
                                                      bool deterministic) override;

 private:
  MlaModel(MlaConfig config, DType type, Checkpoint checkpoint, MlaBackend attention);

  MlaConfig config_;
  DType type_;
  Checkpoint checkpoint_;
  MlaBackend attention_;
  ModelLimits limits_;
  MlaWeights weights_;
  SpanId rope_table_;  // (max_position, rope) f32; dropped at sleep, refilled from `rope_host_` at
                       // wake
  HostBuffer rope_host_;
  Device* device_ = nullptr;  // set by Load
  bool reserved_ = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_MLA_MODEL_H_
