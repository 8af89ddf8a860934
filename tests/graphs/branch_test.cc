// Verifies steps that fork: captured, replayed and planned as a graph with branches, and refused by
// name when a fork is not joined.
#include <algorithm>
#include <stdexcept>

#include "gmock/gmock.h"
#include "graphs/graph.h"
#include "testing/gate.h"
#include "tests/graphs/toy_step.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 16;
constexpr std::uint64_t kBytes = kRows * sizeof(float);

class BranchTest : public testing::Test {
 protected:
  BranchTest() { LoadToyWeights(toy_); }

  // Two branches, each of two operations over scratch of its own: output = (w + w + b) + (w + b +
  // b) = 3 w + 3 b, by way of the branches' sums.
  Step Diamond() {
    return [this](StepContext& main) -> absl::Status {
      const DeviceAddress w = main.Resolve(toy_.weights), b = main.Resolve(toy_.bias);
      const DeviceAddress left = main.Resolve(toy_.input), right = main.Resolve(toy_.input2);
      HOLDFAST_ASSIGN_OR_RETURN(StepContext side, main.Fork());
      {
        HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer sum, side.Scratch("side sum", kBytes));
        HOLDFAST_RETURN_IF_ERROR(ToyAdd(side, w, w, sum.address(), kRows));
        HOLDFAST_RETURN_IF_ERROR(ToyAdd(side, sum.address(), b, left, kRows));
      }
      {
        HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer sum, main.Scratch("main sum", kBytes));
        HOLDFAST_RETURN_IF_ERROR(ToyAdd(main, b, b, sum.address(), kRows));
        HOLDFAST_RETURN_IF_ERROR(ToyAdd(main, sum.address(), w, right, kRows));
      }
      HOLDFAST_RETURN_IF_ERROR(main.Join(std::move(side)));
      HOLDFAST_RETURN_IF_ERROR(ToyAdd(main, left, right, main.Resolve(toy_.output), kRows));
      return main.CopyToHost(toy_.Out(), main.Resolve(toy_.output), kBytes);
    };
  }
  std::vector<float> Expected() {
    std::vector<float> expected;
    for (int i = 0; i < kRows; ++i) expected.push_back(3 * static_cast<float>(i) + 1.5f);
    return expected;
  }
  ScratchPlan Measure(const Step& step) {
    absl::StatusOr<ScratchPlan> plan =
        MeasureStep(*toy_.arena, toy_.lane->stream(), "decode/16", step);
    EXPECT_OK(plan);
    return plan.ok() ? *std::move(plan) : ScratchPlan{};
  }
  absl::StatusOr<std::unique_ptr<Graph>> Capture(const Step& step, const ScratchPlan& plan) {
    return Graph::Capture(*toy_.lane, {.phase = Phase::kDecode, .size = kRows}, step,
                          {.plan = &plan, .scratch = toy_.workspace});
  }
  std::vector<float> Replay(Graph& graph) {
    std::fill(toy_.Out(), toy_.Out() + kRows, -1.0f);
    EXPECT_OK(graph.Replay());
    EXPECT_OK(toy_.lane->Synchronize());
    return ToyOutput(toy_.staging_out, kRows);
  }

  Toy toy_;
};

TEST_F(BranchTest, AForkedStepIsCapturedWithItsBranchesAndReplaysRight) {
  const ScratchPlan plan = Measure(Diamond());
  EXPECT_EQ(plan.height, 512u) << "the branches' buffers must not share";
  EXPECT_EQ(plan.height, plan.lower_bound);
  ASSERT_OK(RunEager(*toy_.lane, "eager", Diamond(), {.plan = &plan, .scratch = toy_.workspace}));
  ASSERT_OK(toy_.lane->Synchronize());
  EXPECT_EQ(ToyOutput(toy_.staging_out, kRows), Expected());
  ASSERT_OK_AND_ASSIGN(const auto graph, Capture(Diamond(), plan));
  ASSERT_OK_AND_ASSIGN(const GraphView view, graph->captured().View());
  std::vector<int> follows(view.nodes.size());
  for (const auto& [from, to] : view.edges) ++follows[to];
  EXPECT_EQ(std::count(follows.begin(), follows.end(), 0), 2) << "both branches begin at once";
  EXPECT_EQ(std::count(follows.begin(), follows.end(), 2), 1) << "one node joins them";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Replay(*graph), Expected());
}

// The negative control of the plan: overlaid all the same, the branches spoil each other. The host
// device runs branches in turn, so that it shows; a GPU may or may not run them side by side.
TEST_F(BranchTest, BranchesThatShareScratchSpoilEachOther) {
  if (toy_.device->info().is_cuda) GTEST_SKIP() << "a GPU's order is its own";
  ScratchPlan plan = Measure(Diamond());
  plan.offsets[1] = plan.offsets[0];
  ASSERT_OK_AND_ASSIGN(const auto graph, Capture(Diamond(), plan));
  EXPECT_NE(Replay(*graph), Expected());
}

TEST_F(BranchTest, ForksInsideForksAndReusedSideStreams) {
  const Step step = [this](StepContext& main) -> absl::Status {
    const DeviceAddress out = main.Resolve(toy_.output), b = main.Resolve(toy_.bias);
    HOLDFAST_RETURN_IF_ERROR(main.Fill(out, 0, kBytes));
    for (int i = 0; i < 3; ++i) {
      HOLDFAST_ASSIGN_OR_RETURN(StepContext side, main.Fork());
      HOLDFAST_ASSIGN_OR_RETURN(StepContext inner, side.Fork());
      HOLDFAST_RETURN_IF_ERROR(ToyAdd(inner, out, b, out, kRows));
      HOLDFAST_RETURN_IF_ERROR(side.Join(std::move(inner)));
      HOLDFAST_RETURN_IF_ERROR(ToyAdd(side, out, out, out, kRows));
      HOLDFAST_RETURN_IF_ERROR(main.Join(std::move(side)));
    }
    return main.CopyToHost(toy_.Out(), out, kBytes);
  };
  const ScratchPlan plan = Measure(step);
  ASSERT_OK_AND_ASSIGN(const auto graph, Capture(step, plan));
  EXPECT_EQ(Replay(*graph), std::vector<float>(kRows, 7.0f));  // ((0.5*2 + 0.5)*2 + 0.5)*2
}

TEST_F(BranchTest, AForkThatIsNotJoinedIsNamedBeforeAnythingIsCaptured) {
  const Step step = [this](StepContext& main) -> absl::Status {
    HOLDFAST_ASSIGN_OR_RETURN(StepContext side, main.Fork());
    return ToyAdd(side, side.Resolve(toy_.bias), side.Resolve(toy_.bias), side.Resolve(toy_.output),
                  kRows);
  };
  const auto measured = MeasureStep(*toy_.arena, toy_.lane->stream(), "decode/16", step);
  ASSERT_THAT(measured, IsErrorKind(ErrorKind::kUncapturable));
  EXPECT_THAT(std::string(measured.status().message()),
              AllOf(HasSubstr("decode/16"), HasSubstr("side stream 0"), HasSubstr("add")));
  // Also where a step behaves only while it is measured.
  const ScratchPlan none;
  const auto captured = Capture(step, none);
  ASSERT_THAT(captured, IsErrorKind(ErrorKind::kUncapturable));
  EXPECT_THAT(std::string(captured.status().message()), HasSubstr("decode/16"));
  EXPECT_THAT(RunEager(*toy_.lane, "eager", step, {}), IsErrorKind(ErrorKind::kUncapturable));
  const ScratchPlan plan = Measure(Diamond());
  ASSERT_OK_AND_ASSIGN(const auto graph, Capture(Diamond(), plan));
  EXPECT_EQ(Replay(*graph), Expected());
}

TEST_F(BranchTest, RawWorkOnAStreamTheStepDrewInIsNamedByTheDevice) {
  ASSERT_OK_AND_ASSIGN(const auto own, toy_.device->CreateStream("own"));
  ASSERT_OK_AND_ASSIGN(const auto event, toy_.device->CreateEvent());
  const auto captured = Capture(
      [&](StepContext& c) -> absl::Status {
        HOLDFAST_RETURN_IF_ERROR(c.Fill(c.Resolve(toy_.output), 0, 4));
        HOLDFAST_RETURN_IF_ERROR(c.device().Record(*event, c.stream()));
        HOLDFAST_RETURN_IF_ERROR(c.device().Wait(*own, *event));
        return Launch(c.device(), *own, ScaleOp(), ShapeFor(4),
                      ScaleParams{c.Resolve(toy_.output).As<float>(), 4, 1, 1});
      },
      {});
  ASSERT_THAT(captured, IsErrorKind(ErrorKind::kUncapturable));
  EXPECT_THAT(std::string(captured.status().message()),
              AllOf(HasSubstr("decode/16"), HasSubstr("'own'"), HasSubstr("never joined")));
  EXPECT_OK(toy_.device->Synchronize(*own));
}

TEST_F(BranchTest, AThrowOnABranchLeavesNoTrace) {
  const ScratchPlan plan = Measure(Diamond());
  ASSERT_OK_AND_ASSIGN(const auto first, Capture(Diamond(), plan));
  const Step throws = [&](StepContext& main) -> absl::Status {
    HOLDFAST_ASSIGN_OR_RETURN(StepContext side, main.Fork());
    HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer sum, side.Scratch("side sum", kBytes));
    HOLDFAST_RETURN_IF_ERROR(ToyAdd(side, sum.address(), sum.address(), sum.address(), kRows));
    throw std::runtime_error("boom");
  };
  const std::uint64_t own = toy_.device->Memory()->own_bytes;
  EXPECT_THAT(Capture(throws, plan), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(RunEager(*toy_.lane, "eager", throws, {.plan = &plan, .scratch = toy_.workspace}),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(toy_.device->Memory()->own_bytes, own);
  ASSERT_OK_AND_ASSIGN(const auto again, Capture(Diamond(), plan));
  EXPECT_THAT(DiffGraphs(*first->captured().View(), *again->captured().View()), testing::IsEmpty());
  EXPECT_EQ(Replay(*again), Expected());
}

TEST_F(BranchTest, OtherContextsCannotBeJoined) {
  const Step self = [](StepContext& main) { return main.Join(main); };
  EXPECT_THAT(MeasureStep(*toy_.arena, toy_.lane->stream(), "s", self),
              IsErrorKind(ErrorKind::kInvalidArgument));
  const Step twice = [](StepContext& main) -> absl::Status {
    HOLDFAST_ASSIGN_OR_RETURN(StepContext side, main.Fork());
    HOLDFAST_RETURN_IF_ERROR(main.Join(side));
    return main.Join(side);
  };
  EXPECT_THAT(MeasureStep(*toy_.arena, toy_.lane->stream(), "s", twice),
              IsErrorKind(ErrorKind::kInvalidArgument));
}

// Transitions wait for side streams too.
TEST_F(BranchTest, SideStreamsAreFencedBySleep) {
  ASSERT_OK_AND_ASSIGN(SideStreams::Side* const side, toy_.lane->sides().Get(0));
  const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  {
    Gate gate(*toy_.device, *side->stream);
    gate.WaitUntilReached();
    EXPECT_THAT(toy_.residency->Sleep({"state"}, soon), IsErrorKind(ErrorKind::kDeadlineExceeded));
  }
  EXPECT_OK(toy_.Sleep({"state"}));
  EXPECT_OK(toy_.Wake({"state"}));
}

}  // namespace
}  // namespace holdfast
