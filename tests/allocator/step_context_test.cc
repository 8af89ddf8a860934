// Verifies that one step runs measured (touching nothing) and eager with the same scratch.
#include "allocator/step_context.h"

#include <cstring>

#include "gtest/gtest.h"
#include "tests/allocator/bytes_on_device.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

class StepContextTest : public testing::Test {
 protected:
  void SetUp() override {
    auto arena =
        Arena::Create(*device_, {.groups = {{"state", Role::kMutable, g_, g_},
                                            {"workspace", Role::kScratch, 32 * kMiB, g_}}});
    ASSERT_OK(arena);
    arena_ = *std::move(arena);
    auto stream = device_->CreateStream("lane");
    ASSERT_OK(stream);
    stream_ = *std::move(stream);
    ASSERT_OK_AND_ASSIGN(state_, arena_->Reserve({.name = "state", .tag = "state", .bytes = 4096}));
  }
  std::uint64_t Work() {
    const CallTable& calls = device_->calls();
    return calls.succeeded(Call::kFill) + calls.succeeded(Call::kCopy) +
           calls.succeeded(Call::kGemm) + calls.succeeded(Call::kLaunch);
  }

  std::unique_ptr<Device> device_ = TestDevice();
  const std::uint64_t g_ = device_->info().granularity;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Stream> stream_;
  SpanId state_;
};

TEST_F(StepContextTest, MeasuringTouchesNothing) {
  const Step step = [&](StepContext& context) -> absl::Status {
    EXPECT_TRUE(context.measuring());
    HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer a, context.Scratch("a", 1000));
    HOLDFAST_RETURN_IF_ERROR(context.Fill(a.address(), 1, 1000));
    HOLDFAST_RETURN_IF_ERROR(context.CopyOnDevice(context.Resolve(state_), a.address(), 1000));
    return absl::OkStatus();
  };
  const std::uint64_t before = Work();
  ASSERT_OK_AND_ASSIGN(const ScratchPlan plan, MeasureStep(*arena_, *stream_, "test", step));
  EXPECT_EQ(Work(), before);
  ASSERT_EQ(plan.requests.size(), 1u);
  EXPECT_EQ(plan.requests[0].last, 1u);
  EXPECT_EQ(plan.height, 1024u);
}

TEST_F(StepContextTest, FailingStepNamesItsScope) {
  const Step step = [](StepContext&) { return MakeError({.kind = ErrorKind::kUnsupported}, "no"); };
  const auto plan = MeasureStep(*arena_, *stream_, "decode 4", step);
  EXPECT_THAT(plan, IsErrorKind(ErrorKind::kUnsupported));
  EXPECT_THAT(std::string(plan.status().message()), testing::HasSubstr("decode 4"));
}

// A product takes its workspace for one operation only, and computes.
TEST_F(StepContextTest, EagerPassRunsWhatWasMeasured) {
  constexpr std::int64_t kN = 8;
  ASSERT_OK_AND_ASSIGN(
      auto gemm,
      device_->PlanGemm({.name = "w", .m = kN, .n = kN, .k = kN, .lda = kN, .ldb = kN, .ldd = kN}));
  ASSERT_OK_AND_ASSIGN(HostBuffer pinned, device_->AllocateHost(kN * kN * 4));
  auto* ones = reinterpret_cast<float*>(pinned.data());
  for (int i = 0; i < kN * kN; ++i) ones[i] = 1.0f;
  const Step step = [&](StepContext& context) -> absl::Status {
    HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer a, context.Scratch("a", kN * kN * 4));
    HOLDFAST_RETURN_IF_ERROR(context.CopyToDevice(a.address(), ones, kN * kN * 4));
    HOLDFAST_RETURN_IF_ERROR(
        context.Gemm(*gemm, a.address(), a.address(), context.Resolve(state_)));
    HOLDFAST_RETURN_IF_ERROR(context.Fill(a.address(), 0, 16));
    return context.CopyToHost(ones, context.Resolve(state_), kN * kN * 4);
  };
  ASSERT_OK_AND_ASSIGN(const ScratchPlan plan, MeasureStep(*arena_, *stream_, "test", step));
  if (gemm->workspace_bytes() > 0) {
    ASSERT_EQ(plan.requests.size(), 2u);
    EXPECT_EQ(plan.requests[1].name, "gemm workspace of w");
    EXPECT_EQ(plan.requests[1].first, plan.requests[1].last);
  }
  ASSERT_OK_AND_ASSIGN(
      const SpanId workspace,
      arena_->Reserve(
          {.name = "workspace", .tag = "workspace", .role = Role::kScratch, .bytes = plan.height}));
  ASSERT_OK(arena_->CommitTag("state"));
  ASSERT_OK(arena_->CommitTag("workspace"));
  ScratchSession session =
      ScratchSession::Serve("test", arena_->range(workspace).base, plan.height, plan);
  StepContext context(*device_, *stream_, ArenaView(*arena_), session);
  ASSERT_OK(step(context));
  ASSERT_OK(session.Finish());
  ASSERT_OK(device_->Synchronize(*stream_));
  for (int i = 0; i < kN * kN; ++i) EXPECT_EQ(ones[i], 8.0f);
}

}  // namespace
}  // namespace holdfast
