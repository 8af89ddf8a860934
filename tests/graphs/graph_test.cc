// Verifies capture and replay of one graph, and that a capture which fails leaves no trace.
#include "graphs/graph.h"

#include <stdexcept>

#include "gmock/gmock.h"
#include "tests/graphs/toy_step.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kRows = 8;

class GraphTest : public testing::Test {
 protected:
  GraphTest() {
    LoadToyWeights(toy_);
    absl::StatusOr<ScratchPlan> plan =
        MeasureStep(*toy_.arena, toy_.lane->stream(), "toy", ToyStep(toy_, kRows));
    EXPECT_OK(plan);
    if (plan.ok()) plan_ = *std::move(plan);
    options_ = {.plan = &plan_, .scratch = toy_.workspace};
  }

  absl::StatusOr<std::unique_ptr<Graph>> Capture(const Step& step) {
    return Graph::Capture(*toy_.lane, {.phase = Phase::kDecode, .size = kRows}, step, options_);
  }
  GraphView View(const CapturedGraph& captured) {
    absl::StatusOr<GraphView> view = captured.View();
    EXPECT_OK(view);
    return view.ok() ? *std::move(view) : GraphView{};
  }
  // The toy step, then `more`.
  Step Then(const std::function<absl::Status(StepContext&)>& more) {
    return [this, more](StepContext& context) -> absl::Status {
      HOLDFAST_RETURN_IF_ERROR(ToyStep(toy_, kRows)(context));
      return more(context);
    };
  }
  // The lane runs eagerly, and captures the same words as `first` did.
  void ExpectNoTrace(const GraphView& first) {
    SetToyInput(toy_, 3);
    EXPECT_OK(RunEager(*toy_.lane, "again", ToyStep(toy_, kRows), options_));
    EXPECT_OK(toy_.lane->Synchronize());
    EXPECT_EQ(ToyOutput(toy_.staging_out, kRows), ToyExpected(3, kRows));
    ASSERT_OK_AND_ASSIGN(const auto again,
                         CaptureStep(*toy_.lane, "again", ToyStep(toy_, kRows), options_));
    EXPECT_THAT(DiffGraphs(first, View(*again)), IsEmpty());
  }
  // Capturing `step` fails as `kind`, naming the graph, and leaves no trace.
  void ExpectRefused(const Step& step, ErrorKind kind) {
    ASSERT_OK_AND_ASSIGN(const auto first,
                         CaptureStep(*toy_.lane, "first", ToyStep(toy_, kRows), options_));
    const absl::Status refused = Capture(step).status();
    ASSERT_THAT(refused, IsErrorKind(kind));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("decode/8"));
    ExpectNoTrace(View(*first));
  }

  Toy toy_;
  ScratchPlan plan_;
  CaptureOptions options_;
};

TEST_F(GraphTest, ReplayEqualsEager) {
  SetToyInput(toy_, 5);
  ASSERT_OK(RunEager(*toy_.lane, "eager", ToyStep(toy_, kRows), options_));
  ASSERT_OK(toy_.lane->Synchronize());
  const std::vector<float> eager = ToyOutput(toy_.staging_out, kRows);
  EXPECT_EQ(eager, ToyExpected(5, kRows));

  ASSERT_OK_AND_ASSIGN(const auto graph, Capture(ToyStep(toy_, kRows)));
  EXPECT_EQ(graph->name(), "decode/8");
  for (float first : {5.0f, -2.0f, 5.0f}) {  // capturing baked addresses in, not contents
    SetToyInput(toy_, first);
    ASSERT_OK(graph->Replay());
    ASSERT_OK(toy_.lane->Synchronize());
    EXPECT_EQ(ToyOutput(toy_.staging_out, kRows), ToyExpected(first, kRows));
  }
  EXPECT_EQ(graph->replays(), 3u);
}

TEST_F(GraphTest, CaptureRunsNothing) {
  std::fill(toy_.Out(), toy_.Out() + kRows, 77.0f);
  SetToyInput(toy_, 5);
  ASSERT_OK_AND_ASSIGN(const auto graph, Capture(ToyStep(toy_, kRows)));
  ASSERT_OK(toy_.lane->Synchronize());
  EXPECT_EQ(ToyOutput(toy_.staging_out, kRows), std::vector<float>(kRows, 77.0f));
}

TEST_F(GraphTest, ManifestNamesWhatTheGraphRefersTo) {
  ASSERT_OK_AND_ASSIGN(const auto graph, Capture(ToyStep(toy_, kRows)));
  const GraphManifest& manifest = graph->manifest();
  EXPECT_EQ(manifest.nodes, kToyStepNodes);
  EXPECT_THAT(manifest.spans, ElementsAre("bias", "input", "output", "weights", "workspace"));
  EXPECT_THAT(manifest.tags, ElementsAre("state", "weights", "workspace"));
  EXPECT_EQ(manifest.audit.count_by_class().at(PointerClass::kHostSpan), 2u);
  EXPECT_EQ(manifest.nodes_by_kind.at("kernel"), 4u);
}

TEST_F(GraphTest, RefusesAStepThatFails) {
  const absl::Status own =
      MakeError({.kind = ErrorKind::kUnsupported, .object = "layer 3"}, "no such thing");
  ExpectRefused(Then([&](StepContext&) { return own; }), ErrorKind::kUnsupported);
}

TEST_F(GraphTest, RefusesAStepThatThrows) {
  ExpectRefused(Then([](StepContext&) -> absl::Status { throw std::runtime_error("boom"); }),
                ErrorKind::kInvalidArgument);
  ExpectRefused(Then([](StepContext&) -> absl::Status { throw 7; }), ErrorKind::kInvalidArgument);
  ExpectRefused(Step(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(std::string(Capture(Then([](StepContext&) -> absl::Status {
                            throw std::runtime_error("boom");
                          }))
                              .status()
                              .message()),
              HasSubstr("boom"));
}

TEST_F(GraphTest, RefusesAStepThatAsksForOtherScratch) {
  ExpectRefused(Then([](StepContext& c) { return c.Scratch("more", 64).status(); }),
                ErrorKind::kPlanMismatch);
  ExpectRefused(ToyStep(toy_, 2 * kRows), ErrorKind::kPlanMismatch);
  ExpectRefused([](StepContext&) { return absl::OkStatus(); }, ErrorKind::kPlanMismatch);
}

TEST_F(GraphTest, RefusesScratchWithoutAWorkspace) {
  options_.scratch = {};
  EXPECT_THAT(Capture(ToyStep(toy_, kRows)), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(RunEager(*toy_.lane, "eager", ToyStep(toy_, kRows), options_),
              IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST_F(GraphTest, RefusesAStepThatSynchronises) {
  ASSERT_OK_AND_ASSIGN(const auto first,
                       CaptureStep(*toy_.lane, "first", ToyStep(toy_, kRows), options_));
  // Also when the step hides that it failed.
  const absl::Status refused = Capture(Then([](StepContext& c) {
                                 c.device().Synchronize(c.stream()).IgnoreError();
                                 return absl::OkStatus();
                               })).status();
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.message()), HasSubstr("decode/8"));
  ExpectNoTrace(View(*first));
}

TEST_F(GraphTest, RefusesForeignDeviceMemory) {
  const StrayChunk stray(*toy_.device);
  const Step step = Then([&](StepContext& c) {
    return ToyAdd(c, {stray.At()}, c.Resolve(toy_.output), c.Resolve(toy_.output), kRows);
  });
  ExpectRefused(step, ErrorKind::kForeignPointer);
  EXPECT_THAT(std::string(Capture(step).status().message()),
              AllOf(HasSubstr("node 7"), HasSubstr("parameter 0 + 0"), HasSubstr("foreign")));
  options_.externals = {{"library", stray.range()}};
  EXPECT_OK(Capture(step));
}

TEST_F(GraphTest, RefusesCopiesOfUnregisteredPinnedMemory) {
  ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, toy_.device->AllocateHost(4096));
  ExpectRefused(
      Then([&](StepContext& c) { return c.CopyToHost(buffer.data(), c.Resolve(toy_.output), 16); }),
      ErrorKind::kForeignPointer);
}

TEST_F(GraphTest, RefusesPointersIntoNoSpan) {
  ExpectRefused(Then([&](StepContext& c) {
                  const DeviceAddress gap = c.Resolve(toy_.workspace2) + 20 * kKiB;
                  return ToyAdd(c, gap, c.Resolve(toy_.output), c.Resolve(toy_.output), kRows);
                }),
                ErrorKind::kForeignPointer);
}

TEST_F(GraphTest, RefusesHostNodesUnlessAllowed) {
  const Step step = Then([](StepContext& c) {
    return c.device().HostFunction(
        c.stream(), [](void*) {}, nullptr);
  });
  ExpectRefused(step, ErrorKind::kUnauditable);
  options_.policy.allow_host_nodes = true;
  EXPECT_OK(Capture(step));
}

TEST_F(GraphTest, RefusesAFillOfASealedSpan) {
  ASSERT_OK_AND_ASSIGN(const auto first,
                       CaptureStep(*toy_.lane, "first", ToyStep(toy_, kRows), options_));
  const absl::Status refused =
      Capture(Then([&](StepContext& c) { return c.Fill(c.Resolve(toy_.bias), 0, 16); })).status();
  EXPECT_FALSE(refused.ok());  // by the device at the call, or by the audit
  EXPECT_THAT(std::string(refused.message()), HasSubstr("decode/8"));
  ExpectNoTrace(View(*first));
}

TEST_F(GraphTest, FailingAnyDeviceCallOfACaptureLeavesNoTrace) {
  ASSERT_OK_AND_ASSIGN(const auto first,
                       CaptureStep(*toy_.lane, "first", ToyStep(toy_, kRows), options_));
  const GraphView words = View(*first);
  bool fired = true;
  std::uint64_t k = 1;
  for (; fired; ++k) {
    ASSERT_LT(k, 100u);
    toy_.device->calls().FailAt(k);
    const absl::StatusOr<std::unique_ptr<Graph>> graph = Capture(ToyStep(toy_, kRows));
    fired = toy_.device->calls().Disarm();
    EXPECT_EQ(graph.ok(), !fired) << "call " << k;
    if (fired) {
      EXPECT_THAT(graph, IsErrorKind(ErrorKind::kDriver));
      EXPECT_THAT(std::string(graph.status().message()), HasSubstr("decode/8"));
    }
    ExpectNoTrace(words);
  }
  EXPECT_GT(k, kToyStepNodes + 3);  // begin, the nodes, end, instantiate were all failed once
}

TEST_F(GraphTest, ShiftedCapturesMoveAndAreNotForReplay) {
  options_.shift = 64 * kGiB;
  EXPECT_THAT(Capture(ToyStep(toy_, kRows)), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(RunEager(*toy_.lane, "eager", ToyStep(toy_, kRows), options_),
              IsErrorKind(ErrorKind::kInvalidArgument));
}

}  // namespace
}  // namespace holdfast
