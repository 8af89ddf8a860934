#include "runtime/mla_weights.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device/bytes.h"
#include "runtime/weight_upload.h"

namespace holdfast {
namespace {

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), ")");
}

std::uint64_t Elements(const std::vector<std::int64_t>& shape) {
  std::uint64_t count = 1;
  for (std::int64_t extent : shape) count *= static_cast<std::uint64_t>(extent);
  return count;
}

}  // namespace

std::vector<WeightTensor> ListWeights(const MlaConfig& c, MlaWeights& weights) {
  const std::int64_t hidden = c.hidden, heads = c.heads, latent = c.kv_lora_rank;
  const std::int64_t qk = c.qk_nope + c.qk_rope;
  weights.layers.resize(static_cast<std::size_t>(c.layers));
  std::vector<WeightTensor> list;
  list.push_back({"model.embed_tokens.weight", {c.vocab, hidden}, &weights.embed});
  for (std::int32_t i = 0; i < c.layers; ++i) {
    MlaLayerWeights& w = weights.layers[static_cast<std::size_t>(i)];
    const std::string layer = absl::StrCat("model.layers.", i, ".");
    const std::string attention = layer + "self_attn.";
    list.push_back({layer + "input_layernorm.weight", {hidden}, &w.input_norm});
    if (c.q_lora_rank > 0) {
      list.push_back({attention + "q_a_proj.weight", {c.q_lora_rank, hidden}, &w.q_a});
      list.push_back({attention + "q_a_layernorm.weight", {c.q_lora_rank}, &w.q_a_norm});
      list.push_back({attention + "q_b_proj.weight", {heads * qk, c.q_lora_rank}, &w.q_b});
    } else {
      list.push_back({attention + "q_proj.weight", {heads * qk, hidden}, &w.q});
    }
    list.push_back(
        {attention + "kv_a_proj_with_mqa.weight", {latent + c.qk_rope, hidden}, &w.kv_a});
    list.push_back({attention + "kv_a_layernorm.weight", {latent}, &w.kv_norm});
    list.push_back(
        {attention + "kv_b_proj.weight", {heads * (c.qk_nope + c.v_head), latent}, &w.kv_b});
    list.push_back({attention + "o_proj.weight", {hidden, heads * c.v_head}, &w.o});
    list.push_back({layer + "post_attention_layernorm.weight", {hidden}, &w.mlp_norm});
    list.push_back({layer + "mlp.gate_proj.weight", {c.intermediate, hidden}, &w.gate});
    list.push_back({layer + "mlp.up_proj.weight", {c.intermediate, hidden}, &w.up});
    list.push_back({layer + "mlp.down_proj.weight", {hidden, c.intermediate}, &w.down});
  }
  list.push_back({"model.norm.weight", {hidden}, &weights.norm});
  if (!c.tied_embeddings) list.push_back({"lm_head.weight", {c.vocab, hidden}, &weights.head});
  return list;
}

std::uint64_t WeightExtent(const MlaConfig& config, DType type) {
  MlaWeights unused;
  std::uint64_t bytes = 0;
  for (const WeightTensor& tensor : ListWeights(config, unused)) {
    bytes += AlignUp(Elements(tensor.shape) * DTypeBytes(type), 256);
  }
  return bytes;
}

absl::Status CheckWeights(const Checkpoint& checkpoint, const MlaConfig& config) {
  MlaWeights unused;
  for (const WeightTensor& tensor : ListWeights(config, unused)) {
    const TensorInfo* found = checkpoint.Find(tensor.name);
    if (found == nullptr) {
      return MakeError({.kind = ErrorKind::kNotFound, .object = tensor.name},
                       "the checkpoint has no such tensor");
    }
    if (found->shape != tensor.shape) {
      return MakeError({.kind = ErrorKind::kCorrupted, .object = tensor.name},
                       absl::StrCat("has shape ", ShapeText(found->shape), ", the config asks for ",
                                    ShapeText(tensor.shape)));
    }
    if (found->dtype != "F32" && found->dtype != "BF16") {
      return MakeError({.kind = ErrorKind::kUnsupported, .object = tensor.name},
                       absl::StrCat("has dtype ", found->dtype, "; F32 and BF16 are read"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReserveWeights(const MlaConfig& config, DType type, Arena& arena,
                            MlaWeights& weights) {
  for (const WeightTensor& tensor : ListWeights(config, weights)) {
    HOLDFAST_ASSIGN_OR_RETURN(*tensor.span,
                              arena.Reserve({.name = tensor.name,
                                             .tag = kWeightsTag,
                                             .role = Role::kImmutable,
                                             .bytes = Elements(tensor.shape) * DTypeBytes(type),
                                             .owner = "model"}));
  }
  if (config.tied_embeddings) weights.head = weights.embed;
  return absl::OkStatus();
}

absl::Status LoadWeights(const Checkpoint& checkpoint, const MlaConfig& config, DType type,
                         Arena& arena, MlaWeights& weights, const LoadOptions& options) {
  const std::vector<WeightTensor> list = ListWeights(config, weights);
  std::uint64_t total = 0;
  for (const WeightTensor& tensor : list) total += Elements(tensor.shape) * DTypeBytes(type);
  HOLDFAST_RETURN_IF_ERROR(arena.CommitTag(kWeightsTag));
  HOLDFAST_ASSIGN_OR_RETURN(WeightUpload upload, WeightUpload::Create(arena, options.through));
  std::uint64_t done = 0;
  for (const WeightTensor& tensor : list) {
    HOLDFAST_RETURN_IF_ERROR(upload.Upload(checkpoint, tensor.name, type, *tensor.span));
    done += Elements(tensor.shape) * DTypeBytes(type);
    if (options.progress != nullptr) options.progress(done, total);
  }
  return upload.Finish(kWeightsTag);
}

}  // namespace holdfast
