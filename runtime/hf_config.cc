#include "runtime/hf_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "device/error.h"
#include "runtime/json.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

constexpr char kArchitecture[] = "DeepseekV3ForCausalLM";

absl::Status Invalid(const std::string& key, const std::string& what) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = key}, what);
}
absl::Status Unsupported(const std::string& key, const std::string& what) {
  return MakeError({.kind = ErrorKind::kUnsupported, .object = key}, what);
}
absl::Status Missing(const std::string& key) {
  return MakeError({.kind = ErrorKind::kNotFound, .object = key}, "is missing from the config");
}

// The key's value; null if it is absent or null, which mean the same here.
const Json* Find(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

absl::StatusOr<std::int32_t> Count(const std::string& key, const Json& value, std::int32_t least,
                                   std::int32_t most) {
  const bool fits = value.is_number_unsigned() &&
                    value.get<std::uint64_t>() >= static_cast<std::uint64_t>(least) &&
                    value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  if (!fits) return Invalid(key, absl::StrCat("must be a whole number from ", least, " to ", most));
  return static_cast<std::int32_t>(value.get<std::uint64_t>());
}

absl::StatusOr<double> Positive(const std::string& key, const Json& value, double most) {
  const double number = value.is_number() ? value.get<double>() : 0;
  if (!(number > 0 && number <= most)) {
    return Invalid(key, absl::StrCat("must be a number above 0 and at most ", most));
  }
  return number;
}

absl::StatusOr<bool> Flag(const Json& root, const char* key, bool otherwise) {
  const Json* value = Find(root, key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) return Invalid(key, "must be true or false");
  return value->get<bool>();
}

absl::StatusOr<std::string> Text(const Json& root, const char* key, const char* otherwise) {
  const Json* value = Find(root, key);
  if (value == nullptr) return std::string(otherwise);
  if (!value->is_string()) return Invalid(key, "must be a string");
  return value->get<std::string>();
}

absl::Status CheckArchitecture(const Json& root) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::string type, Text(root, "model_type", ""));
  if (type.empty()) return Missing("model_type");
  if (type != "deepseek_v3") {
    return Unsupported("model_type",
                       absl::StrCat(QuoteName(type), " is not offered; \"deepseek_v3\" is"));
  }
  const Json* names = Find(root, "architectures");
  if (names == nullptr) return absl::OkStatus();
  if (!names->is_array() || names->empty() ||
      !std::all_of(names->begin(), names->end(), [](const Json& n) { return n.is_string(); })) {
    return Invalid("architectures", "must be a list of names");
  }
  if (std::find(names->begin(), names->end(), kArchitecture) != names->end())
    return absl::OkStatus();
  return Unsupported("architectures", absl::StrCat(QuoteName((*names)[0].get<std::string>()),
                                                   " is not offered; \"", kArchitecture, "\" is"));
}

// Layers from first_k_dense_replace on are mixtures of experts, unless there are no experts at all.
absl::Status CheckDense(const Json& root, std::int32_t layers) {
  const auto experts = root.find("n_routed_experts");
  if (experts != root.end() && (experts->is_null() || *experts == 0)) return absl::OkStatus();
  const Json* dense = Find(root, "first_k_dense_replace");
  if (dense == nullptr) return Missing("first_k_dense_replace");
  HOLDFAST_ASSIGN_OR_RETURN(const std::int32_t first,
                            Count("first_k_dense_replace", *dense, 0, 1 << 20));
  if (first >= layers) return absl::OkStatus();
  return Unsupported("n_routed_experts",
                     absl::StrCat("layers ", first, " to ", layers - 1,
                                  " are mixtures of experts; only dense layers are offered"));
}

absl::Status CheckPlainParts(const Json& root) {
  HOLDFAST_ASSIGN_OR_RETURN(const bool bias, Flag(root, "attention_bias", false));
  if (bias) return Unsupported("attention_bias", "projections with a bias are not offered");
  HOLDFAST_ASSIGN_OR_RETURN(const std::string activation, Text(root, "hidden_act", "silu"));
  if (activation != "silu") {
    return Unsupported("hidden_act",
                       absl::StrCat(QuoteName(activation), " is not offered; \"silu\" is"));
  }
  if (Find(root, "quantization_config") != nullptr) {
    return Unsupported("quantization_config", "quantised checkpoints are not offered");
  }
  return absl::OkStatus();
}

// Refuses a description of RoPE (the value of `key`) that is anything but the plain one.
absl::Status CheckPlainRope(const std::string& key, const Json& rope) {
  if (!rope.is_object()) return Invalid(key, "must be an object");
  for (const char* type : {"rope_type", "type"}) {
    HOLDFAST_ASSIGN_OR_RETURN(const std::string name, Text(rope, type, "default"));
    if (name != "default")
      return Unsupported(key, absl::StrCat(QuoteName(name), " scaling is not offered"));
  }
  for (const char* scaling : {"factor", "partial_rotary_factor"}) {
    const Json* value = Find(rope, scaling);
    if (value != nullptr && *value != 1.0)
      return Unsupported(key, absl::StrCat("a ", scaling, " is not offered"));
  }
  return absl::OkStatus();
}

// transformers 4 writes rope_theta and rope_scaling, transformers 5 one object rope_parameters.
absl::Status ReadRope(const Json& root, MlaConfig& config) {
  if (const Json* scaling = Find(root, "rope_scaling"); scaling != nullptr) {
    HOLDFAST_RETURN_IF_ERROR(CheckPlainRope("rope_scaling", *scaling));
  }
  const Json* outer = Find(root, "rope_theta");
  const Json* inner = nullptr;
  if (const Json* rope = Find(root, "rope_parameters"); rope != nullptr) {
    HOLDFAST_RETURN_IF_ERROR(CheckPlainRope("rope_parameters", *rope));
    inner = Find(*rope, "rope_theta");
  }
  if (outer == nullptr && inner == nullptr) return Missing("rope_theta");
  for (const Json* theta : {outer, inner}) {
    if (theta == nullptr) continue;
    HOLDFAST_ASSIGN_OR_RETURN(config.rope_theta, Positive("rope_theta", *theta, 1e12));
  }
  if (outer != nullptr && inner != nullptr && outer->get<double>() != inner->get<double>()) {
    return Invalid("rope_theta", "differs from the one in rope_parameters");
  }
  HOLDFAST_ASSIGN_OR_RETURN(config.rope_interleaved, Flag(root, "rope_interleave", true));
  return absl::OkStatus();
}

// The upper bounds keep every product of extents, times layers and bytes, below 2^62.
absl::Status ReadExtents(const Json& root, MlaConfig& config) {
  const struct {
    const char* key;
    std::int32_t* field;
    std::int32_t most;
  } counts[] = {
      {"hidden_size", &config.hidden, 1 << 16},
      {"num_hidden_layers", &config.layers, 1 << 10},
      {"num_attention_heads", &config.heads, 1 << 10},
      {"kv_lora_rank", &config.kv_lora_rank, 1 << 14},
      {"qk_nope_head_dim", &config.qk_nope, 1 << 12},
      {"qk_rope_head_dim", &config.qk_rope, 1 << 12},
      {"v_head_dim", &config.v_head, 1 << 12},
      {"intermediate_size", &config.intermediate, 1 << 20},
      {"vocab_size", &config.vocab, 1 << 22},
      {"max_position_embeddings", &config.max_position, 1 << 22},
  };
  for (const auto& [key, field, most] : counts) {
    const Json* value = Find(root, key);
    if (value == nullptr) return Missing(key);
    HOLDFAST_ASSIGN_OR_RETURN(*field, Count(key, *value, 1, most));
  }
  if (config.qk_rope % 2 != 0) return Invalid("qk_rope_head_dim", "must be even");
  // Null says that there is no query latent; absent would mean a default of the library.
  if (!root.contains("q_lora_rank")) return Missing("q_lora_rank");
  if (const Json* rank = Find(root, "q_lora_rank"); rank != nullptr) {
    HOLDFAST_ASSIGN_OR_RETURN(config.q_lora_rank, Count("q_lora_rank", *rank, 1, 1 << 16));
  }
  if (const Json* kv_heads = Find(root, "num_key_value_heads");
      kv_heads != nullptr && *kv_heads != config.heads) {
    return Unsupported("num_key_value_heads", "other than num_attention_heads is not offered");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MlaConfig> ParseHfConfig(const std::string& text) {
  HOLDFAST_ASSIGN_OR_RETURN(const Json root,
                            ParseJson(text, "config.json", {.max_bytes = 1 << 20}));
  if (!root.is_object()) return Invalid("config.json", "must be an object");
  HOLDFAST_RETURN_IF_ERROR(CheckArchitecture(root));
  HOLDFAST_RETURN_IF_ERROR(CheckPlainParts(root));
  MlaConfig config;
  HOLDFAST_RETURN_IF_ERROR(ReadExtents(root, config));
  HOLDFAST_RETURN_IF_ERROR(CheckDense(root, config.layers));
  HOLDFAST_RETURN_IF_ERROR(ReadRope(root, config));
  const Json* epsilon = Find(root, "rms_norm_eps");
  if (epsilon == nullptr) return Missing("rms_norm_eps");
  HOLDFAST_ASSIGN_OR_RETURN(const double rms_epsilon, Positive("rms_norm_eps", *epsilon, 0.1));
  config.rms_epsilon = static_cast<float>(rms_epsilon);
  HOLDFAST_ASSIGN_OR_RETURN(config.tied_embeddings, Flag(root, "tie_word_embeddings", false));
  return config;
}

}  // namespace holdfast
