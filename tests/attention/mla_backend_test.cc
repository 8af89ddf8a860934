#include "attention/mla_backend.h"

#include <cmath>
#include <functional>

#include "gtest/gtest.h"
#include "tests/attention/mla_case.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

const MlaBackendConfig kConfig = {
    .heads = 4, .latent = 64, .rope = 16, .page_tokens = 64, .scale = 0.25f};

// A refusal names what was wrong, the value and what is allowed.
void ExpectRefused(const absl::Status& status, const std::string& argument,
                   const std::string& value) {
  EXPECT_THAT(status, IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()), HasSubstr(argument + " is " + value + "; must be"));
}

TEST(MlaBackendTest, AcceptsTheRangeOfTheKernel) {
  for (int heads : {1, 128}) {
    for (int latent : {8, 512}) {
      for (int rope : {0, 64}) {
        MlaBackendConfig config = kConfig;
        config.heads = heads, config.latent = latent, config.rope = rope;
        ASSERT_OK_AND_ASSIGN(const MlaBackend backend, MlaBackend::Create(config));
        ASSERT_OK_AND_ASSIGN(
            const AttentionDeclaration declaration,
            backend.Declare({.max_batched_tokens = 64, .max_sequences = 8, .max_model_len = 256}));
        EXPECT_TRUE(declaration.scratch.empty());
        EXPECT_EQ(declaration.profiling, ProfilingSupport::kRequired);
      }
    }
  }
}

TEST(MlaBackendTest, RefusesConfigurationsOutsideTheRange) {
  struct Case {
    std::function<void(MlaBackendConfig&)> spoil;
    std::string argument, value;
  };
  const std::vector<Case> cases = {
      {[](MlaBackendConfig& c) { c.heads = 0; }, "heads", "0"},
      {[](MlaBackendConfig& c) { c.heads = 129; }, "heads", "129"},
      {[](MlaBackendConfig& c) { c.latent = 520; }, "latent", "520"},
      {[](MlaBackendConfig& c) { c.latent = 12; }, "latent", "12"},
      {[](MlaBackendConfig& c) { c.rope = -8; }, "rope", "-8"},
      {[](MlaBackendConfig& c) { c.rope = 72; }, "rope", "72"},
      {[](MlaBackendConfig& c) { c.rope = 4; }, "rope", "4"},
      {[](MlaBackendConfig& c) { c.page_tokens = 0; }, "page_tokens", "0"},
      {[](MlaBackendConfig& c) { c.scale = 0; }, "scale", "0"},
      {[](MlaBackendConfig& c) { c.scale = INFINITY; }, "scale", "inf"},
      {[](MlaBackendConfig& c) { c.type = DType::kF16; }, "type", "f16"},
  };
  for (const Case& c : cases) {
    MlaBackendConfig config = kConfig;
    c.spoil(config);
    ExpectRefused(MlaBackend::Create(config).status(), c.argument, c.value);
  }
}

// A backend with a step to run in, on an arena that holds nothing.
class MlaBackendRunTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        arena_, Arena::Create(*device_, {.groups = {{.tag = "state", .extent_bytes = kMiB}}}));
  }
  // The call of a case, by way of the backend; `measure` runs the step in measuring mode.
  absl::Status Run(const MlaBackend& backend, const MlaBackend::Call& call, bool measure) {
    const ScratchPlan none;
    ScratchSession scratch = measure
                                 ? ScratchSession::Measure("test", arena_->window().base)
                                 : ScratchSession::Serve("test", arena_->window().base, 0, none);
    StepContext step(*device_, memory_.stream(), ArenaView(*arena_), scratch);
    return backend.Run(step, call);
  }
  static MlaBackend::Call CallOf(const MlaAttentionParams& p) {
    const auto address = [](const void* pointer) {
      return DeviceAddress{reinterpret_cast<std::uint64_t>(pointer)};
    };
    return {.q = address(p.q),
            .cache = address(p.cache),
            .out = address(p.out),
            .lse = address(p.lse),
            .block_table = address(p.block_table),
            .row_sequence = address(p.row_sequence),
            .row_kv_length = address(p.row_kv_length),
            .page_stride = p.page_stride,
            .layer_offset = p.layer_offset,
            .rows = p.rows,
            .table_stride = p.table_stride};
  }

  std::unique_ptr<Device> device_ = TestDevice();
  TestMemory memory_{*device_, kMiB};
  std::unique_ptr<Arena> arena_;
  const MlaCase<float> case_ = MakeDecodeCase<float>({}, {40, 0, 65});
  const MlaAttentionParams params_ = UploadMlaCase(memory_, case_, 3);
};

// The backend passes every argument on: its result is the reference's.
TEST_F(MlaBackendRunTest, RunEnqueuesTheAttentionOfTheCall) {
  MlaBackendConfig config = kConfig;
  config.scale = case_.scale;
  ASSERT_OK_AND_ASSIGN(const MlaBackend backend, MlaBackend::Create(config));
  ASSERT_OK(Run(backend, CallOf(params_), /*measure=*/false));
  const MlaResult<float> result = DownloadMlaResult<float>(memory_, params_);
  EXPECT_LE(RelativeL2(Widened(result.out), ComputeReference(case_).out), kThreshold<float>);
}

TEST_F(MlaBackendRunTest, MeasuringEnqueuesNothing) {
  ASSERT_OK_AND_ASSIGN(const MlaBackend backend, MlaBackend::Create(kConfig));
  ASSERT_OK(Run(backend, CallOf(params_), /*measure=*/true));
  EXPECT_EQ(device_->calls().succeeded(Call::kLaunch), 0u);
  ASSERT_OK(Run(backend, CallOf(params_), /*measure=*/false));
  EXPECT_EQ(device_->calls().succeeded(Call::kLaunch), 1u);
}

TEST_F(MlaBackendRunTest, RunRefusesBadArgumentsBeforeAnythingIsEnqueued) {
  ASSERT_OK_AND_ASSIGN(const MlaBackend backend, MlaBackend::Create(kConfig));
  struct Case {
    std::function<void(MlaBackend::Call&)> spoil;
    std::string argument, value;
  };
  const std::vector<Case> cases = {
      {[](MlaBackend::Call& c) { c.rows = 0; }, "rows", "0"},
      {[](MlaBackend::Call& c) { c.table_stride = 0; }, "table_stride", "0"},
      {[](MlaBackend::Call& c) { c.layer_offset = -8; }, "layer_offset", "-8"},
      {[](MlaBackend::Call& c) { c.layer_offset += 4; }, "layer_offset", "5124"},
      {[](MlaBackend::Call& c) { c.page_stride = 5120; }, "page_stride", "5120"},
      {[](MlaBackend::Call& c) { c.page_stride += 1; }, "page_stride", "15369"},
      {[](MlaBackend::Call& c) { c.q = {}; }, "q", "0x0"},
      {[](MlaBackend::Call& c) { c.cache = {24}; }, "cache", "0x18"},
      {[](MlaBackend::Call& c) { c.out = {8}; }, "out", "0x8"},
      {[](MlaBackend::Call& c) { c.lse = {2}; }, "lse", "0x2"},
      {[](MlaBackend::Call& c) { c.block_table = {}; }, "block_table", "0x0"},
      {[](MlaBackend::Call& c) { c.row_sequence = {}; }, "row_sequence", "0x0"},
      {[](MlaBackend::Call& c) { c.row_kv_length = {}; }, "row_kv_length", "0x0"},
  };
  for (const Case& c : cases) {
    MlaBackend::Call call = CallOf(params_);
    c.spoil(call);
    ExpectRefused(Run(backend, call, /*measure=*/false), c.argument, c.value);
  }
  EXPECT_EQ(device_->calls().succeeded(Call::kLaunch), 0u);
}

}  // namespace
}  // namespace holdfast
