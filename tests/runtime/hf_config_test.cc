// Verifies that a config.json gives the model's numbers, and that whatever is missing, out of range
// or not offered is refused under its key.
#include "runtime/hf_config.h"

#include <nlohmann/json.hpp>
#include <string>

#include "device/error.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

using nlohmann::json;

json Sound() {
  return json::parse(R"({
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 256,
    "num_hidden_layers": 4, "num_attention_heads": 3, "num_key_value_heads": 3, "q_lora_rank": null,
    "kv_lora_rank": 512, "qk_nope_head_dim": 48, "qk_rope_head_dim": 64, "v_head_dim": 80,
    "intermediate_size": 704, "first_k_dense_replace": 4, "vocab_size": 97, "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5, "rope_theta": 5000.0,
    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}, "rope_interleave": false,
    "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": true, "torch_dtype": "bfloat16"})");
}

TEST(HfConfigTest, ReadsEveryNumber) {
  ASSERT_OK_AND_ASSIGN(const MlaConfig c, ParseHfConfig(Sound().dump()));
  EXPECT_EQ(c.hidden, 256);
  EXPECT_EQ(c.layers, 4);
  EXPECT_EQ(c.heads, 3);
  EXPECT_EQ(c.q_lora_rank, 0);
  EXPECT_EQ(c.kv_lora_rank, 512);
  EXPECT_EQ(c.qk_nope, 48);
  EXPECT_EQ(c.qk_rope, 64);
  EXPECT_EQ(c.v_head, 80);
  EXPECT_EQ(c.intermediate, 704);
  EXPECT_EQ(c.vocab, 97);
  EXPECT_EQ(c.max_position, 512);
  EXPECT_FLOAT_EQ(c.rms_epsilon, 1e-5f);
  EXPECT_FLOAT_EQ(c.latent_rms_epsilon, 1e-6f);  // whatever rms_norm_eps is
  EXPECT_EQ(c.rope_theta, 5000);
  EXPECT_FALSE(c.rope_interleaved);
  EXPECT_TRUE(c.tied_embeddings);
}

// What may be left out, or said otherwise, and what that means.
TEST(HfConfigTest, OptionalKeysHaveTheirDefaults) {
  json c = Sound();
  for (const char* key :
       {"architectures", "num_key_value_heads", "rope_parameters", "rope_interleave", "hidden_act",
        "attention_bias", "tie_word_embeddings"}) {
    c.erase(key);
  }
  c["q_lora_rank"] = 24;
  c["rope_scaling"] = nullptr;
  ASSERT_OK_AND_ASSIGN(const MlaConfig config, ParseHfConfig(c.dump()));
  EXPECT_EQ(config.q_lora_rank, 24);
  EXPECT_TRUE(config.rope_interleaved);
  EXPECT_FALSE(config.tied_embeddings);
}

TEST(HfConfigTest, RopeThetaMayStandInEitherPlace) {
  json inner = Sound();
  inner.erase("rope_theta");
  ASSERT_OK_AND_ASSIGN(const MlaConfig config, ParseHfConfig(inner.dump()));
  EXPECT_EQ(config.rope_theta, 5000);
  inner["rope_parameters"].erase("rope_theta");
  const auto neither = ParseHfConfig(inner.dump());
  EXPECT_THAT(neither, IsErrorKind(ErrorKind::kNotFound));
  EXPECT_EQ(GetErrorInfo(neither.status())->object, "rope_theta");
}

TEST(HfConfigTest, NoExpertsAtAllIsDenseWhateverTheLayer) {
  json c = Sound();
  c["first_k_dense_replace"] = 0;
  c["n_routed_experts"] = nullptr;
  EXPECT_OK(ParseHfConfig(c.dump()));
  c["n_routed_experts"] = 8;
  EXPECT_THAT(ParseHfConfig(c.dump()), IsErrorKind(ErrorKind::kUnsupported));
}

TEST(HfConfigTest, NamesEachMissingKey) {
  for (const char* key :
       {"model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "q_lora_rank",
        "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "intermediate_size",
        "first_k_dense_replace", "vocab_size", "max_position_embeddings", "rms_norm_eps"}) {
    json c = Sound();
    c.erase(key);
    const auto result = ParseHfConfig(c.dump());
    EXPECT_THAT(result, IsErrorKind(ErrorKind::kNotFound)) << key;
    EXPECT_EQ(GetErrorInfo(result.status())->object, key);
  }
}

TEST(HfConfigTest, RefusesWhatIsNoCountForEveryExtent) {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "q_lora_rank",
                          "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                          "intermediate_size", "vocab_size", "max_position_embeddings"}) {
    for (const json& value :
         {json(0), json(-1), json(2.5), json("64"), json(true), json(json::array()),
          json(2147483648u), json(18446744073709551615u)}) {
      json c = Sound();
      c[key] = value;
      const auto result = ParseHfConfig(c.dump());
      ASSERT_THAT(result, IsErrorKind(ErrorKind::kInvalidArgument)) << key << " " << value;
      EXPECT_EQ(GetErrorInfo(result.status())->object, key) << value;
    }
  }
}

struct Bad {
  std::string name, key, value;  // the value as JSON
  ErrorKind kind;
  std::string object;  // the key if empty
};
class HfConfigRefuses : public testing::TestWithParam<Bad> {};

TEST_P(HfConfigRefuses, NamesTheKey) {
  const Bad& bad = GetParam();
  json c = Sound();
  c[bad.key] = json::parse(bad.value);
  const auto result = ParseHfConfig(c.dump());
  ASSERT_THAT(result, IsErrorKind(bad.kind));
  EXPECT_EQ(GetErrorInfo(result.status())->object, bad.object.empty() ? bad.key : bad.object);
}

constexpr ErrorKind kNotOffered = ErrorKind::kUnsupported;
constexpr ErrorKind kWrong = ErrorKind::kInvalidArgument;

INSTANTIATE_TEST_SUITE_P(
    All, HfConfigRefuses,
    testing::Values(
        Bad{"OtherModel", "model_type", "\"llama\"", kNotOffered, ""},
        Bad{"ModelTypeNumber", "model_type", "3", kWrong, ""},
        Bad{"OtherArchitecture", "architectures", "[\"LlamaForCausalLM\"]", kNotOffered, ""},
        Bad{"NoArchitecture", "architectures", "[]", kWrong, ""},
        Bad{"ArchitectureNumber", "architectures", "[1]", kWrong, ""},
        Bad{"Experts", "first_k_dense_replace", "3", kNotOffered, "n_routed_experts"},
        Bad{"NegativeDense", "first_k_dense_replace", "-1", kWrong, ""},
        Bad{"Bias", "attention_bias", "true", kNotOffered, ""},
        Bad{"BiasText", "attention_bias", "\"no\"", kWrong, ""},
        Bad{"Activation", "hidden_act", "\"gelu\"", kNotOffered, ""},
        Bad{"Quantised", "quantization_config", "{\"quant_method\": \"fp8\"}", kNotOffered, ""},
        Bad{"OldScaling", "rope_scaling", "{\"type\": \"yarn\", \"factor\": 40}", kNotOffered, ""},
        Bad{"OldScalingFactorOnly", "rope_scaling", "{\"factor\": 40}", kNotOffered, ""},
        Bad{"OldScalingText", "rope_scaling", "\"yarn\"", kWrong, ""},
        Bad{"NewScaling", "rope_parameters", "{\"rope_type\": \"linear\", \"rope_theta\": 5000.0}",
            kNotOffered, ""},
        Bad{"PartialRope", "rope_parameters", "{\"partial_rotary_factor\": 0.5}", kNotOffered, ""},
        Bad{"ThetasDiffer", "rope_parameters", "{\"rope_theta\": 10000.0}", kWrong, "rope_theta"},
        Bad{"ThetaZero", "rope_theta", "0", kWrong, ""},
        Bad{"ThetaText", "rope_theta", "\"1e4\"", kWrong, ""},
        Bad{"OddRope", "qk_rope_head_dim", "63", kWrong, ""},
        Bad{"GroupedHeads", "num_key_value_heads", "1", kNotOffered, ""},
        Bad{"EpsilonZero", "rms_norm_eps", "0", kWrong, ""},
        Bad{"EpsilonNegative", "rms_norm_eps", "-1e-6", kWrong, ""},
        Bad{"EpsilonBig", "rms_norm_eps", "1", kWrong, ""},
        Bad{"TiedText", "tie_word_embeddings", "\"yes\"", kWrong, ""},
        Bad{"InterleaveNumber", "rope_interleave", "1", kWrong, ""}),
    [](const auto& info) { return info.param.name; });

TEST(HfConfigTest, RefusesTextThatIsNoObject) {
  EXPECT_THAT(ParseHfConfig(""), IsErrorKind(ErrorKind::kCorrupted));
  EXPECT_THAT(ParseHfConfig("[]"), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(ParseHfConfig(R"({"hidden_size": 1, "hidden_size": 2})"),
              IsErrorKind(ErrorKind::kCorrupted));
}

TEST(HfConfigTest, SurvivesEveryFlippedBitAndTruncation) {
  const std::string sound = Sound().dump();
  for (std::size_t length = 0; length < sound.size(); ++length) {
    EXPECT_THAT(ParseHfConfig(sound.substr(0, length)), IsErrorKind(ErrorKind::kCorrupted))
        << length;
  }
  for (std::size_t bit = 0; bit < sound.size() * 8; ++bit) {
    std::string flipped = sound;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const auto result = ParseHfConfig(flipped);
    EXPECT_TRUE(result.ok() || GetErrorInfo(result.status()).has_value()) << bit;
  }
}

}  // namespace
}  // namespace holdfast
