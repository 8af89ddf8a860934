// Verifies: the grammar of synthetic models, and that each error names key, value and grammar.
#include "runtime/synthetic_spec.h"

#include "gtest/gtest.h"
#include "runtime/synthetic_stack.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

TEST(SyntheticSpecTest, LayersFollowOneAnotherWithTheirOwnKeysAndDefaults) {
  // Verifies: parts in order, `layers` repeats, limits are everybody's.
  ASSERT_OK_AND_ASSIGN(
      const auto layers,
      ParseSyntheticSpec("mla_sparse:heads=64,layers=2,path_gating=off+gated_delta_net",
                         {.max_batched_tokens = 8, .max_sequences = 4, .max_model_len = 32}));
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[1].backend, "mla_sparse");
  EXPECT_EQ(layers[1].config.heads, 64);
  EXPECT_TRUE(layers[1].config.quantized);
  EXPECT_FALSE(layers[1].config.path_gating);
  EXPECT_EQ(layers[2].backend, "gated_delta_net");
  EXPECT_EQ(layers[2].config.latent, 64);
  EXPECT_TRUE(layers[2].config.path_gating);
  for (const SyntheticLayer& layer : layers) {
    EXPECT_EQ(layer.config.max_batched_tokens, 8);
    EXPECT_EQ(layer.config.max_sequences, 4);
    EXPECT_EQ(layer.config.max_model_len, 32);
  }
}

TEST(SyntheticSpecTest, ErrorsNameKeyValueAndGrammar) {
  // Verifies: negative, zero, huge, non-numeric, unknown, repeated, empty.
  const struct {
    const char* spec;
    ErrorKind kind;
    const char* object;
    const char* text;
  } cases[] = {
      {"", ErrorKind::kInvalidArgument, "synthetic part", "BACKEND:key=value"},
      {"mla_sparse+", ErrorKind::kInvalidArgument, "synthetic part", "BACKEND:key=value"},
      {":heads=1", ErrorKind::kInvalidArgument, "synthetic part", "BACKEND:key=value"},
      {"mla_sprase", ErrorKind::kNotFound, "backend 'mla_sprase'", "mla_sparse"},
      {"mla_sparse:heads=-1", ErrorKind::kInvalidArgument, "mla_sparse heads", "'-1'"},
      {"mla_sparse:heads=0", ErrorKind::kInvalidArgument, "mla_sparse heads", "[1, 128]"},
      {"mla_sparse:heads=99999999999999999999", ErrorKind::kInvalidArgument, "mla_sparse heads",
       "[1, 128]"},
      {"mla_sparse:heads=many", ErrorKind::kInvalidArgument, "mla_sparse heads", "'many'"},
      {"mla_sparse:heads", ErrorKind::kInvalidArgument, "mla_sparse argument", "key=value"},
      {"mla_sparse:", ErrorKind::kInvalidArgument, "mla_sparse argument", "key=value"},
      {"mla_sparse:haeds=1", ErrorKind::kInvalidArgument, "mla_sparse key", "'haeds'"},
      {"mla_sparse:heads=1,heads=2", ErrorKind::kInvalidArgument, "mla_sparse heads", "given once"},
      {"mla_sparse:quantized=maybe", ErrorKind::kInvalidArgument, "mla_sparse quantized", "true"},
      {"mla_sparse:type=fp4", ErrorKind::kInvalidArgument, "mla_sparse type", "one of bf16, f32"},
      {"mla_sparse:layers=1000+mla_dense:layers=100", ErrorKind::kInvalidArgument,
       "synthetic layers", "1024"},
  };
  for (const auto& c : cases) {
    const auto layers = ParseSyntheticSpec(c.spec, {});
    EXPECT_THAT(layers, IsErrorKind(c.kind)) << c.spec;
    if (layers.ok()) continue;
    EXPECT_EQ(GetErrorInfo(layers.status())->object, c.object) << c.spec;
    EXPECT_NE(std::string(layers.status().message()).find(c.text), std::string::npos)
        << layers.status();
  }
}

TEST(SyntheticSpecTest, ConfigurationsABackendRefusesAreItsErrors) {
  // Verifies: what the grammar allows and the backend does not is refused before memory is touched.
  const auto create = [](const char* spec) {
    return SyntheticStack::Create(*ParseSyntheticSpec(spec, {})).status();
  };
  EXPECT_THAT(create("gated_delta_net:heads=16,key_heads=5"),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(create("mla_sparse:latent=64"), IsErrorKind(ErrorKind::kUnsupported));
  EXPECT_THAT(create("mla_dense:quantized=1"), IsErrorKind(ErrorKind::kUnsupported));
  EXPECT_THAT(create("mla_windowed:compress_ratio=3"), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(create("mla_dense:latent=9,rope=0,page_tokens=1"),
              IsErrorKind(ErrorKind::kUnsupported));
  EXPECT_THAT(SyntheticStack::Create({}).status(), IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST(SyntheticSpecTest, HelpListsBackendsAndKeys) {
  const std::string help = SyntheticSpecHelp();
  for (const char* word : {"mla_windowed", "path_gating", "compress_ratio", "[1, 128]"}) {
    EXPECT_NE(help.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace holdfast
