// The weights of an MLA model: which tensors a checkpoint must hold, the spans they live in, and
// the way from file to device.
#ifndef HOLDFAST_RUNTIME_MLA_WEIGHTS_H_
#define HOLDFAST_RUNTIME_MLA_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "runtime/hf_config.h"
#include "runtime/model.h"
#include "runtime/safetensors.h"

namespace holdfast {

struct MlaLayerWeights {
  SpanId input_norm;  // (hidden)
  SpanId q;           // (heads * (nope + rope), hidden); unset if q_a is used
  SpanId q_a;         // (q_lora_rank, hidden)
  SpanId q_a_norm;    // (q_lora_rank)
  SpanId q_b;         // (heads * (nope + rope), q_lora_rank)
  SpanId kv_a;        // (latent + rope, hidden)
  SpanId kv_norm;     // (latent)
  SpanId kv_b;  // (heads * (nope + v), latent): per head W_UK (nope, latent), then W_UV (v, latent)
  SpanId o;     // (hidden, heads * v)
  SpanId mlp_norm;  // (hidden)
  SpanId gate, up;  // (intermediate, hidden)
  SpanId down;      // (hidden, intermediate)
};

struct MlaWeights {
  SpanId embed;  // (vocab, hidden)
  SpanId norm;   // (hidden)
  SpanId head;   // (vocab, hidden); the same span as embed if tied
  std::vector<MlaLayerWeights> layers;
};

// One tensor of the checkpoint and the span it fills.
struct WeightTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  SpanId* span;
};

inline constexpr char kWeightsTag[] = "weights";

// Every tensor the config asks for, in file-friendly order, pointing into `weights` (which is
// resized).
std::vector<WeightTensor> ListWeights(const MlaConfig& config, MlaWeights& weights);
// Address space the weights take as `type`.
std::uint64_t WeightExtent(const MlaConfig& config, DType type);
// kCorrupted or kNotFound naming the tensor if one is missing or of another shape or an unusable
// dtype.
absl::Status CheckWeights(const Checkpoint& checkpoint, const MlaConfig& config);
// Reserves one span a tensor, named like it.
absl::Status ReserveWeights(const MlaConfig& config, DType type, Arena& arena, MlaWeights& weights);
// Commits what ReserveWeights reserved, uploads the file (converting to `type`), and seals.
absl::Status LoadWeights(const Checkpoint& checkpoint, const MlaConfig& config, DType type,
                         Arena& arena, MlaWeights& weights, const LoadOptions& options);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_MLA_WEIGHTS_H_
