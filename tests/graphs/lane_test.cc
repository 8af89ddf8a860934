// Verifies that a lane is one order of execution: other streams wait or are refused, captures take
// turns, and two lanes run side by side on scratch of their own.
#include "graphs/lane.h"

#include "gmock/gmock.h"
#include "graphs/graph.h"
#include "testing/gate.h"
#include "tests/graphs/toy_step.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 8;

class LaneTest : public testing::Test {
 protected:
  LaneTest() { LoadToyWeights(toy_); }

  std::unique_ptr<Graph> Capture(Lane& lane, const Step& step, SpanId workspace) {
    absl::StatusOr<ScratchPlan> plan = MeasureStep(*toy_.arena, lane.stream(), "toy", step);
    EXPECT_OK(plan);
    absl::StatusOr<std::unique_ptr<Graph>> graph =
        Graph::Capture(lane, {.phase = Phase::kDecode, .size = kRows}, step,
                       {.plan = &*plan, .scratch = workspace});
    EXPECT_OK(graph);
    return graph.ok() ? *std::move(graph) : nullptr;
  }
  std::vector<std::uint64_t> DriverCalls() {
    std::vector<std::uint64_t> counts;
    for (int call = 0; call < static_cast<int>(Call::kCount_); ++call) {
      counts.push_back(toy_.device->calls().succeeded(static_cast<Call>(call)));
    }
    return counts;
  }

  Toy toy_;
};

TEST_F(LaneTest, AReplayOnAnotherStreamWaitsForTheLaneAndTheLaneForIt) {
  const auto graph = Capture(*toy_.lane, ToyStep(toy_, kRows), toy_.workspace);
  ASSERT_OK_AND_ASSIGN(const auto other, toy_.device->CreateStream("other"));
  SetToyInput(toy_, 5);
  {
    Gate gate(*toy_.device, toy_.lane->stream());
    ASSERT_OK(graph->ReplayOn(*other));  // behind the lane's gate
    const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    EXPECT_THAT(toy_.device->SynchronizeBy(*other, soon),
                IsErrorKind(ErrorKind::kDeadlineExceeded));
  }
  ASSERT_OK(toy_.device->Synchronize(*other));
  EXPECT_EQ(ToyOutput(toy_.staging_out, kRows), ToyExpected(5, kRows));
  {
    Gate gate(*toy_.device, *other);
    ASSERT_OK(graph->ReplayOn(*other));
    const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    EXPECT_THAT(toy_.device->SynchronizeBy(toy_.lane->stream(), soon),
                IsErrorKind(ErrorKind::kDeadlineExceeded))
        << "the lane's stream stands for all its work";
    // So a transition waits for it too, although nobody registered the stream.
    EXPECT_THAT(toy_.residency->Sleep({"state"}, soon), IsErrorKind(ErrorKind::kDeadlineExceeded));
  }
  EXPECT_OK(toy_.lane->Synchronize());
  EXPECT_EQ(graph->replays(), 2u);
}

TEST_F(LaneTest, TheLanesOwnStreamCostsNoEvent) {
  const auto graph = Capture(*toy_.lane, ToyStep(toy_, kRows), toy_.workspace);
  const std::uint64_t events = toy_.device->calls().succeeded(Call::kRecordEvent);
  ASSERT_OK(graph->ReplayOn(toy_.lane->stream()));
  ASSERT_OK(graph->Replay());
  EXPECT_EQ(toy_.device->calls().succeeded(Call::kRecordEvent), events);
}

TEST_F(LaneTest, OtherStreamsAreRefusedWhereConfiguredWithoutADriverCall) {
  ASSERT_OK_AND_ASSIGN(const auto strict,
                       Lane::Create(*toy_.arena, "strict", {.other_stream = OtherStream::kRefuse}));
  const auto graph = Capture(*strict, ToyStep(toy_, kRows), toy_.workspace);
  ASSERT_OK_AND_ASSIGN(const auto other, toy_.device->CreateStream("other"));
  const auto before = DriverCalls();
  for (Stream* stream : {other.get(), &toy_.lane->stream()}) {
    const absl::Status refused = graph->ReplayOn(*stream);
    ASSERT_THAT(refused, IsErrorKind(ErrorKind::kInvalidArgument));
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("decode/8"), HasSubstr(stream->name()), HasSubstr("strict")));
  }
  EXPECT_EQ(DriverCalls(), before);
  EXPECT_OK(graph->ReplayOn(strict->stream()));
}

TEST_F(LaneTest, AStreamOfAnotherDeviceIsRefusedWithoutADriverCall) {
  const auto graph = Capture(*toy_.lane, ToyStep(toy_, kRows), toy_.workspace);
  const auto device = TestHostDevice();
  ASSERT_OK_AND_ASSIGN(const auto foreign, device->CreateStream("foreign"));
  const auto before = DriverCalls();
  const absl::Status refused = graph->ReplayOn(*foreign);
  ASSERT_THAT(refused, IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("decode/8"), HasSubstr("foreign"), HasSubstr("another device")));
  EXPECT_EQ(DriverCalls(), before);
}

TEST_F(LaneTest, TwoCapturesAtOnceOnOneLaneAreBusy) {
  const Step inner = ToyStep(toy_, kRows);
  absl::StatusOr<ScratchPlan> plan = MeasureStep(*toy_.arena, toy_.lane->stream(), "toy", inner);
  ASSERT_OK(plan);
  const CaptureOptions options{.plan = &*plan, .scratch = toy_.workspace};
  absl::Status capture, eager;
  const Step outer = [&](StepContext& context) -> absl::Status {
    capture = CaptureStep(*toy_.lane, "second", inner, options).status();
    eager = RunEager(*toy_.lane, "third", inner, options);
    return inner(context);
  };
  ASSERT_OK(CaptureStep(*toy_.lane, "first", outer, options));
  for (const absl::Status* refused : {&capture, &eager}) {
    EXPECT_THAT(*refused, IsErrorKind(ErrorKind::kBusy));
    EXPECT_THAT(std::string(refused->message()),
                AllOf(HasSubstr("taken by first"), HasSubstr("lane")));
  }
  EXPECT_OK(CaptureStep(*toy_.lane, "again", inner, options));
}

// Each lane in turn is held before a replay while the other one's runs to its end; neither touches
// the other's data. (A driver runs host functions one at a time: two gates would wait for each
// other.)
TEST_F(LaneTest, TwoLanesRunTogetherOnDisjointScratch) {
  ASSERT_OK_AND_ASSIGN(const auto lane2, Lane::Create(*toy_.arena, "lane2"));
  const auto first = Capture(*toy_.lane, ToyStep(toy_, kRows), toy_.workspace);
  const auto second = Capture(*lane2, ToyStep(toy_, kRows, SecondIo(toy_)), toy_.workspace2);
  const AddressRange a = toy_.arena->range(toy_.workspace), b = toy_.arena->range(toy_.workspace2);
  EXPECT_TRUE(a.end() <= b.base || b.end() <= a.base);
  struct Side {
    Lane& lane;
    Graph& graph;
    const HostSpan* out;
  };
  const Side sides[2] = {{*toy_.lane, *first, toy_.staging_out},
                         {*lane2, *second, toy_.staging_out2}};
  for (int held = 0; held < 2; ++held) {
    const Side& still = sides[held];
    const Side& running = sides[1 - held];
    const float input = 4 + static_cast<float>(held);
    SetToyInput(toy_, input);
    {
      Gate hold(*toy_.device, still.lane.stream());
      ASSERT_OK(still.graph.Replay());
      hold.WaitUntilReached();
      ASSERT_OK(running.graph.Replay());
      ASSERT_OK(running.lane.Synchronize()) << "while the other still stands";
      EXPECT_EQ(ToyOutput(running.out, kRows), ToyExpected(input, kRows));
    }
    ASSERT_OK(still.lane.Synchronize());
    EXPECT_EQ(ToyOutput(still.out, kRows), ToyExpected(input, kRows));
  }
}

}  // namespace
}  // namespace holdfast
