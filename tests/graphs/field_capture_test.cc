// Field cases of capture and scratch: growth after capture (12), captures without end (16), lazy
// set-up (17), temporaries (18), live buffers (22); and that making graphs leaves nothing behind.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tests/graphs/field_rig.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FieldCapture : public FieldTest {};

// A step of `rows` MiB of scratch: it fills it, and adds its first floats to the output.
StepFactory ScratchOfRows(SpanId output) {
  return [output](const GraphKey& key) {
    return absl::StatusOr<Step>([output, key](StepContext& step) -> absl::Status {
      const std::uint64_t bytes = static_cast<std::uint64_t>(key.size) * kMiB / 2;
      HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer buffer, step.Scratch("rows", bytes));
      HOLDFAST_RETURN_IF_ERROR(step.Fill(buffer.address(), 0, bytes));
      return AddRows(step, buffer.address(), step.Resolve(output), step.Resolve(output), 4);
    });
  };
}

TEST_F(FieldCapture, FieldCase12ScratchThatGrowsAfterCaptureIsRefusedAndTheOldGraphStaysRight) {
  const SpanId output = State("output", 64), canary = State("canary", 4 * kMiB);
  GraphSet set(*lane_, ScratchOfRows(output), {.eager_above_largest = true});
  ASSERT_OK_AND_ASSIGN(const FamilyId decode, set.AddFamily({}, *BucketList::Of({8}, 8)));
  ASSERT_OK(set.Measure());
  ASSERT_EQ(set.scratch_bytes(), 4 * kMiB);
  ASSERT_OK(set.Capture(Workspace(4 * kMiB)));
  EXPECT_TRUE(arena_->locked()) << "capturing implies the lock";

  // Six MiB now: refused by name and size; the workspace has not moved.
  const absl::Status refused = set.Serve(decode, 12).status();
  ASSERT_THAT(refused, IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("decode/12"), HasSubstr("workspace")));
  EXPECT_EQ(GetErrorInfo(refused)->need, 6 * kMiB);
  EXPECT_EQ(GetErrorInfo(refused)->have, 4 * kMiB);
  EXPECT_THAT(
      arena_->Reserve(
          {.name = "bigger", .tag = "workspace", .role = Role::kScratch, .bytes = 6 * kMiB}),
      IsErrorKind(ErrorKind::kLocked));

  // Memory that somebody else gets now, in the arena and outside, is not the old graph's.
  const MappedMemory fresh(*device_, 4 * kMiB);
  ASSERT_OK(device_->Fill(*stream_, At(canary), 0x5a, 4 * kMiB));
  ASSERT_OK(device_->Fill(*stream_, fresh.base(), 0xa5, 4 * kMiB));
  Upload(At(output), std::vector<float>(16, 3.0f));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(*set.Serve(decode, 8), Served::kReplay);
  ASSERT_OK(lane_->Synchronize());
  EXPECT_EQ(Download<float>(At(output), 16), std::vector<float>(16, 3.0f));
  EXPECT_EQ(Download<std::uint8_t>(At(canary), 4 * kMiB),
            std::vector<std::uint8_t>(4 * kMiB, 0x5a));
  EXPECT_EQ(Download<std::uint8_t>(fresh.base(), 4 * kMiB),
            std::vector<std::uint8_t>(4 * kMiB, 0xa5));
}

TEST_F(FieldCapture, FieldCase16FiveHundredRequestsCaptureNothingMore) {
  const SpanId output = State("output", 64);
  GraphSet set(*lane_, ScratchOfRows(output), {.eager_above_largest = true});
  ASSERT_OK_AND_ASSIGN(const FamilyId decode, set.AddFamily({}, *BucketList::Of({1, 2, 4, 8}, 8)));
  ASSERT_OK_AND_ASSIGN(const FamilyId draft, set.AddFamily({.query_length = 2, .variant = "draft"},
                                                           *BucketList::Of({1, 4, 6}, 8)));
  ASSERT_OK(set.Measure());
  ASSERT_OK(set.Capture(Workspace(8 * kMiB)));
  const std::uint64_t captures = Succeeded(Call::kBeginCapture);
  const std::uint64_t executables = Succeeded(Call::kInstantiate);
  const std::uint64_t own = device_->Memory()->own_bytes;
  for (int i = 0; i < 500; ++i) {
    ASSERT_OK(set.Serve(i % 3 == 0 ? draft : decode, 1 + i * 7 % 10 % (i % 3 == 0 ? 6 : 10)));
  }
  ASSERT_OK(lane_->Synchronize());
  EXPECT_EQ(set.graphs().size(), 7u);
  EXPECT_EQ(set.counts().captures, 7u);
  EXPECT_EQ(Succeeded(Call::kBeginCapture), captures);
  EXPECT_EQ(Succeeded(Call::kInstantiate), executables);
  EXPECT_EQ(device_->Memory()->own_bytes, own);
  EXPECT_EQ(set.counts().replays + set.counts().eager_runs, 500u);
  EXPECT_GT(set.counts().eager_runs, 0u);
}

// Nothing has run in this process: the matrix library is not set up, no kernel is loaded.
TEST_F(FieldCapture, FieldCase17ALibrarysFirstUseFallsIntoTheWarmRunNotTheCapture) {
  const SpanId data = State("data", 4096);
  GraphSet set(*lane_, [&](const GraphKey&) -> absl::StatusOr<Step> {
    const GemmSpec spec{.name = "w", .m = 8, .n = 8, .k = 8, .lda = 8, .ldb = 8, .ldd = 8};
    HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<GemmPlan> made, device_->PlanGemm(spec));
    return Step([this, data, plan = std::shared_ptr<GemmPlan>(std::move(made))](
                    StepContext& step) -> absl::Status {
      const DeviceAddress at = step.Resolve(data);
      HOLDFAST_RETURN_IF_ERROR(step.Gemm(*plan, at, at + 1024, at + 2048));
      return AddRows(step, at, at, at + 3072, 64);
    });
  });
  ASSERT_OK(set.AddPhase(Phase::kDecode, *BucketList::Of({1}, 1)));
  ASSERT_OK(set.Measure());
  const SpanId workspace = Workspace(std::max<std::uint64_t>(set.scratch_bytes(), 256));
  const auto allocations = [&] {
    return std::vector<std::uint64_t>{Succeeded(Call::kCreateChunk), Succeeded(Call::kAllocateHost),
                                      Succeeded(Call::kPlanGemm), Succeeded(Call::kMap)};
  };
  const std::vector<std::uint64_t> before = allocations();
  ASSERT_OK(set.Capture(workspace));  // no WarmUp was called
  EXPECT_EQ(allocations(), before);
  EXPECT_OK(*set.Serve(FamilyId{0}, 1) == Served::kReplay ? lane_->Synchronize()
                                                          : absl::InternalError("not replayed"));
}

TEST_F(FieldCapture, FieldCase18TemporariesComeFromTheArenaAndRawAllocationsAreRefused) {
  constexpr std::uint64_t kTemporary = 64 * kMiB;
  const SpanId output = State("output", 64);
  const Step step = [&](StepContext& context) -> absl::Status {
    for (const char* name : {"first", "second", "scan"}) {
      HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer buffer, context.Scratch(name, kTemporary));
      const DeviceAddress tail = buffer.address() + (kTemporary - 256);
      HOLDFAST_RETURN_IF_ERROR(context.Fill(tail, 1, 256));
      HOLDFAST_RETURN_IF_ERROR(
          AddRows(context, tail, context.Resolve(output), context.Resolve(output), 4));
    }
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const ScratchPlan plan,
                       MeasureStep(*arena_, lane_->stream(), "decode/1", step));
  EXPECT_EQ(plan.height, kTemporary) << "taken in turn they share";
  const CaptureOptions options{.plan = &plan, .scratch = Workspace(plan.height)};
  const GraphKey key{.phase = Phase::kDecode, .size = 1};
  ASSERT_OK_AND_ASSIGN(const auto graph, Graph::Capture(*lane_, key, step, options));
  EXPECT_EQ(graph->manifest().nodes_by_kind.count("allocation"), 0u);
  EXPECT_EQ(graph->manifest().nodes_by_kind.count("free"), 0u);
  ASSERT_OK(graph->Replay());
  ASSERT_OK(lane_->Synchronize());
  const std::uint64_t own = device_->Memory()->own_bytes;
  for (int i = 1; i < 1000; ++i) {
    ASSERT_OK(graph->Replay());
    if (i % 100 == 0) {
      ASSERT_OK(lane_->Synchronize());
    }
  }
  ASSERT_OK(lane_->Synchronize());
  EXPECT_EQ(device_->Memory()->own_bytes, own);

  // The negative control: temporaries from elsewhere.
  for (const bool pinned : {false, true}) {
    const Step raw = [&](StepContext& context) -> absl::Status {
      HOLDFAST_RETURN_IF_ERROR(step(context));
      if (context.measuring()) return absl::OkStatus();
      return pinned ? context.device().AllocateHost(4096).status()
                    : context.device().CreateChunk(2 * kMiB).status();
    };
    const absl::Status refused = Graph::Capture(*lane_, key, raw, options).status();
    ASSERT_THAT(refused, IsErrorKind(ErrorKind::kUncapturable));
    EXPECT_EQ(GetErrorInfo(refused)->call, pinned ? "allocate host" : "create chunk");
    EXPECT_THAT(std::string(refused.message()), HasSubstr("decode/1"));
    EXPECT_EQ(device_->Memory()->own_bytes, own);
    ASSERT_OK(graph->Replay()) << "a clean abort";
    ASSERT_OK(lane_->Synchronize());
  }
}

TEST_F(FieldCapture, FieldCase22ASecondRequestDoesNotTouchALiveBuffer) {
  constexpr std::uint64_t kBytes = 8 * kMiB;
  const SpanId found = State("found", kBytes);
  DeviceAddress a_at, b_at;
  const Step step = [&](StepContext& context) -> absl::Status {
    HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer a, context.Scratch("input", kBytes));
    HOLDFAST_RETURN_IF_ERROR(context.Fill(a.address(), 0x3c, kBytes));
    HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer b, context.Scratch("output", kBytes));
    HOLDFAST_RETURN_IF_ERROR(context.Fill(b.address(), 0xff, kBytes));
    a_at = a.address();
    b_at = b.address();
    return context.CopyOnDevice(context.Resolve(found), a.address(), kBytes);
  };
  ASSERT_OK_AND_ASSIGN(const ScratchPlan plan,
                       MeasureStep(*arena_, lane_->stream(), "decode/1", step));
  EXPECT_EQ(plan.height, 2 * kBytes);
  ASSERT_OK_AND_ASSIGN(const auto graph,
                       Graph::Capture(*lane_, {.size = 1}, step,
                                      {.plan = &plan, .scratch = Workspace(plan.height)}));
  EXPECT_TRUE(a_at + kBytes <= b_at || b_at + kBytes <= a_at);
  ASSERT_OK(graph->Replay());
  ASSERT_OK(lane_->Synchronize());
  EXPECT_EQ(Download<std::uint8_t>(At(found), kBytes), std::vector<std::uint8_t>(kBytes, 0x3c));
}

// Mixed graphs, made and given up again and again.
TEST_F(FieldCapture, CapturingAndGivingUpLeavesNothingBehind) {
  const SpanId output = State("output", 4096);
  const SpanId workspace = Workspace(64 * kKiB);
  const auto step = [&](int kind) -> Step {
    return [&, kind](StepContext& context) -> absl::Status {
      const DeviceAddress out = context.Resolve(output);
      if (kind == 0) return context.Fill(out, 0, 64);
      if (kind == 1) {
        HOLDFAST_ASSIGN_OR_RETURN(StepContext side, context.Fork());
        HOLDFAST_RETURN_IF_ERROR(AddRows(side, out, out, out + 512, 16));
        HOLDFAST_RETURN_IF_ERROR(AddRows(context, out, out, out + 1024, 16));
        return context.Join(std::move(side));
      }
      HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer buffer, context.Scratch("b", 32 * kKiB));
      HOLDFAST_RETURN_IF_ERROR(context.Fill(buffer.address(), 1, 32 * kKiB));
      if (kind == 3) return MakeError({.kind = ErrorKind::kUnsupported}, "planted");
      return context.CopyOnDevice(out, buffer.address(), 4096);
    };
  };
  std::vector<ScratchPlan> plans;
  for (int kind = 0; kind < 3; ++kind) {
    plans.push_back(*MeasureStep(*arena_, lane_->stream(), "s", step(kind)));
  }
  plans.push_back(plans[2]);
  // Default: a tenth of what is promised; the environment asks for all of it.
  const char* const full = std::getenv("HOLDFAST_LONG_TESTS");
  const int rounds = full != nullptr && *full != '\0' ? 1000 : 100;
  std::uint64_t own = 0, process = 0;
  for (int round = 0; round < rounds; ++round) {
    const int kind = round % 4;
    const auto graph = Graph::Capture(*lane_, {.size = kind}, step(kind),
                                      {.plan = &plans[kind], .scratch = workspace});
    ASSERT_EQ(graph.ok(), kind != 3);
    if (graph.ok()) {
      ASSERT_OK((*graph)->Replay());
    }
    if (round == 7) {
      own = device_->Memory()->own_bytes;
      process = device_->Memory()->process_bytes;
    }
  }
  EXPECT_EQ(device_->Memory()->own_bytes, own);
  EXPECT_EQ(device_->Memory()->process_bytes, process) << "the driver uses its pool again";
  EXPECT_EQ(Succeeded(Call::kInstantiate), static_cast<std::uint64_t>(rounds - rounds / 4));
}

}  // namespace
}  // namespace holdfast
