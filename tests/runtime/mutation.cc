#include "tests/runtime/mutation.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "runtime/safetensors.h"

namespace holdfast {

#if HOLDFAST_WITH_CUDA
const void* ShortenCuda();  // mutation.cu
#endif

namespace {

void ShortenHost(const ShortenParams& p) {
  for (std::int32_t i = 0; i < p.count; ++i) p.values[i] -= p.values[i] > 1 ? 1 : 0;
}

class ShortenedPass : public ModelPass {
 public:
  ShortenedPass(std::unique_ptr<ModelPass> pass, std::int32_t rows)
      : pass_(std::move(pass)), rows_(rows) {}

  absl::Status Enqueue(StepContext& step, const InputBlock& input, const OutputBlock& output,
                       SpanId cache) override {
    const ShortenParams params{.values = input.row_kv_length, .count = rows_};
    HOLDFAST_RETURN_IF_ERROR(
        step.Launch(ShortenOp(), {.grid = {1, 1, 1}, .block = {128, 1, 1}}, params));
    return pass_->Enqueue(step, input, output, cache);
  }

 private:
  std::unique_ptr<ModelPass> pass_;
  std::int32_t rows_;
};

class MaskedModel : public Model {
 public:
  explicit MaskedModel(std::unique_ptr<Model> model) : model_(std::move(model)) {}

  const ModelLimits& limits() const override { return model_->limits(); }
  KvSpec kv() const override { return model_->kv(); }
  std::vector<GroupSpec> groups() const override { return model_->groups(); }
  std::uint64_t ScratchBound(const BatchShape& shape) const override {
    return model_->ScratchBound(shape);
  }
  absl::Status Load(Arena& arena, const LoadOptions& options) override {
    return model_->Load(arena, options);
  }
  absl::StatusOr<std::unique_ptr<ModelPass>> PlanPass(const BatchShape& shape,
                                                      bool deterministic) override {
    HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<ModelPass> pass,
                              model_->PlanPass(shape, deterministic));
    return std::unique_ptr<ModelPass>(new ShortenedPass(std::move(pass), shape.rows));
  }

 private:
  std::unique_ptr<Model> model_;
};

std::string CopyFolder(const std::string& folder, const std::string& suffix) {
  namespace fs = std::filesystem;
  const std::string copy =
      ::testing::TempDir() + "/" + fs::path(folder).filename().string() + suffix;
  fs::remove_all(copy);
  fs::copy(folder, copy);
  return copy;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

const Op& ShortenOp() {
  static const Op op =
      MakeOp<ShortenParams, ShortenHost>("test_shorten", HOLDFAST_CUDA_TWIN(ShortenCuda));
  return op;
}

std::unique_ptr<Model> WithMaskOffByOne(std::unique_ptr<Model> model) {
  return std::make_unique<MaskedModel>(std::move(model));
}

std::string CopyWithOtherRope(const std::string& folder) {
  const std::string copy = CopyFolder(folder, "-rope");
  std::string config = ReadAll(copy + "/config.json");
  const std::string key = "\"rope_interleave\": ";
  const std::size_t at = config.find(key);
  EXPECT_NE(at, std::string::npos) << folder;
  const bool interleaved = config.compare(at + key.size(), 4, "true") == 0;
  config.replace(at + key.size(), interleaved ? 4 : 5, interleaved ? "false" : "true");
  std::ofstream(copy + "/config.json", std::ios::binary) << config;
  return copy;
}

std::string CopyWithScaledQueries(const std::string& folder, float factor) {
  const std::string copy = CopyFolder(folder, "-scale");
  for (const auto& entry : std::filesystem::directory_iterator(copy)) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".safetensors" ||
        entry.path().filename() == "expected.safetensors")
      continue;
    const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    std::fstream data(path, std::ios::binary | std::ios::in | std::ios::out);
    for (const auto& [name, tensor] : file->tensors()) {
      if (name.find("q_proj") == std::string::npos && name.find("q_b_proj") == std::string::npos)
        continue;
      std::vector<float> values(tensor.bytes / sizeof(float));
      EXPECT_TRUE(file->Read(tensor, 0, tensor.bytes, values.data()).ok());
      for (float& value : values) value *= factor;
      data.seekp(static_cast<std::streamoff>(tensor.offset));
      data.write(reinterpret_cast<const char*>(values.data()),
                 static_cast<std::streamsize>(tensor.bytes));
    }
  }
  return copy;
}

}  // namespace holdfast
