// config.json of a Hugging Face folder, read into the numbers an MLA model needs.
#ifndef HOLDFAST_RUNTIME_HF_CONFIG_H_
#define HOLDFAST_RUNTIME_HF_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace holdfast {

struct MlaConfig {
  std::int32_t hidden = 0;
  std::int32_t layers = 0;
  std::int32_t heads = 0;
  std::int32_t q_lora_rank = 0;  // 0: q is projected in one step
  std::int32_t kv_lora_rank = 0;
  std::int32_t qk_nope = 0, qk_rope = 0, v_head = 0;  // elements a head
  std::int32_t intermediate = 0;
  std::int32_t vocab = 0;
  std::int32_t max_position = 0;
  float rms_epsilon = 1e-6f;
  // Of the two norms on latents (q_a_layernorm, kv_a_layernorm): transformers never sets theirs
  // from the config.
  float latent_rms_epsilon = 1e-6f;
  double rope_theta = 10000;
  bool rope_interleaved = true;
  bool tied_embeddings = false;
};

// Parses the text of config.json. kUnsupported names what is not offered (another architecture,
// experts, rope scaling, attention bias, another activation); kInvalidArgument or kNotFound names
// the key that is missing, of the wrong type, or out of range.
absl::StatusOr<MlaConfig> ParseHfConfig(const std::string& text);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_HF_CONFIG_H_
