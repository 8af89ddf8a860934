// Logits against Hugging Face transformers on random checkpoints with peaked attention: prefill and
// 32 decode steps, batches of 1 and 5, through captured graphs (fixtures by
// tools/make_fixtures.py).
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "runtime/safetensors.h"
#include "tests/runtime/engine_fixture.h"
#include "tests/runtime/mutation.h"

namespace holdfast {
namespace {

constexpr int kSteps = 32;
constexpr double kHostBound = 1e-5;     // f32 on the host against f32 transformers
constexpr double kBf16Ratio = 1.5;      // times transformers' own bf16 error
constexpr double kMutationFactor = 10;  // planted faults exceed the bound by this much

struct Row {
  std::vector<std::int32_t> tokens;  // the prompt, then what the decode steps are fed
  std::int32_t prompt_length = 0;
  std::vector<float> logits;  // (kSteps + 1, vocab)
};

template <typename T>
std::vector<T> ReadTensor(const SafetensorsFile& file, const std::string& name) {
  const TensorInfo& tensor = file.tensors().at(name);
  std::vector<T> values(tensor.bytes / sizeof(T));
  EXPECT_TRUE(file.Read(tensor, 0, tensor.bytes, values.data()).ok()) << name;
  return values;
}

std::vector<Row> ReadRows(const std::string& fixture, const std::string& batch) {
  const absl::StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open(FixtureFolder(fixture) + "/expected.safetensors");
  EXPECT_TRUE(file.ok()) << file.status();
  std::vector<Row> rows;
  while (true) {
    const std::string name = absl::StrCat(batch, ".row", rows.size());
    if (file->tensors().count(name + ".tokens") == 0) break;
    rows.push_back({ReadTensor<std::int32_t>(*file, name + ".tokens"),
                    ReadTensor<std::int32_t>(*file, name + ".prompt_length")[0],
                    ReadTensor<float>(*file, name + ".logits")});
  }
  return rows;
}

double TransformersBf16Error(const std::string& fixture, const std::string& batch) {
  std::ifstream in(FixtureFolder(fixture) + "/expected.json");
  return nlohmann::json::parse(in)["bf16_rel_l2"][batch].get<double>();
}

std::unique_ptr<Model> OpenModel(const std::string& folder, const Device& device) {
  absl::StatusOr<std::unique_ptr<MlaModel>> model = MlaModel::Open(folder, TestType(device));
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// Relative L2 error of all logits of the batch, through the engine's graphs.
double LogitError(Device& device, std::unique_ptr<Model> model, const std::vector<Row>& rows) {
  EngineOptions options = SmallOptions();
  options.max_sequence = 128;
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(device, std::move(model), options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  std::vector<GenerateRequest> requests;
  for (const Row& row : rows) {
    const auto prompt_end = row.tokens.begin() + row.prompt_length;
    requests.push_back({.prompt = {row.tokens.begin(), prompt_end},
                        .max_tokens = kSteps + 1,
                        .forced = {prompt_end, row.tokens.end()},
                        .keep_logits = true});
  }
  const absl::StatusOr<std::vector<Completion>> done = (*engine)->Generate(requests);
  EXPECT_TRUE(done.ok()) << done.status();
  double difference = 0, norm = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::size_t i = 0;
    for (const std::vector<float>& step : (*done)[r].logits) {
      for (float got : step) {
        const double want = rows[r].logits[i++];
        difference += (got - want) * (got - want);
        norm += want * want;
      }
    }
    EXPECT_EQ(i, rows[r].logits.size());
  }
  return std::sqrt(difference / norm);
}

class HfParity : public ::testing::TestWithParam<const char*> {
 protected:
  double Bound(const Device& device, const std::string& batch) const {
    return device.info().is_cuda ? kBf16Ratio * TransformersBf16Error(GetParam(), batch)
                                 : kHostBound;
  }
};

TEST_P(HfParity, LogitsAgreeWithTransformers) {
  // Verifies: prefill and decode through graphs give transformers' logits within the bound of the
  // device.
  for (const std::string batch : {"b1", "b5"}) {
    const std::unique_ptr<Device> device = TestDevice();
    const std::vector<Row> rows = ReadRows(GetParam(), batch);
    ASSERT_EQ(rows.size(), batch == "b1" ? 1u : 5u);
    const double error = LogitError(*device, OpenModel(FixtureFolder(GetParam()), *device), rows);
    EXPECT_LE(error, Bound(*device, batch)) << batch;
    RecordProperty(batch + "_rel_l2", absl::StrCat(error));
    RecordProperty(batch + "_bound", absl::StrCat(Bound(*device, batch)));
  }
}

TEST_P(HfParity, PlantedFaultsExceedTheBoundTenfold) {
  // Verifies: negative controls: the other RoPE pairing, a mask off by one, and the scale of a head
  // of the absorbed width would each be seen.
  const std::unique_ptr<Device> device = TestDevice();
  const std::vector<Row> rows = ReadRows(GetParam(), "b5");
  const double bound = kMutationFactor * Bound(*device, "b5");
  const std::string folder = FixtureFolder(GetParam());
  EXPECT_GT(LogitError(*device, OpenModel(CopyWithOtherRope(folder), *device), rows), bound)
      << "RoPE pairing";
  EXPECT_GT(LogitError(*device, WithMaskOffByOne(OpenModel(folder, *device)), rows), bound)
      << "mask";
  EXPECT_GT(LogitError(*device, OpenModel(CopyWithScaledQueries(folder, 0.577f), *device), rows),
            bound)
      << "scale";
}

INSTANTIATE_TEST_SUITE_P(Fixtures, HfParity,
                         ::testing::Values("query_latent", "halves_two_files", "latent512_tied"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace holdfast
