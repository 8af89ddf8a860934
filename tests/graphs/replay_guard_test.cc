// Verifies that no replay is launched into memory that is not there: asleep, undefined, or in
// transition.
#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "graphs/graph.h"
#include "testing/gate.h"
#include "tests/graphs/toy_step.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 8;

std::chrono::steady_clock::time_point Soon(int milliseconds) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
}

class ReplayGuardTest : public testing::Test {
 protected:
  ReplayGuardTest() { LoadToyWeights(toy_); }

  std::unique_ptr<Graph> Capture(Lane& lane, const Step& step, SpanId workspace) {
    absl::StatusOr<ScratchPlan> plan = MeasureStep(*toy_.arena, lane.stream(), "toy", step);
    EXPECT_OK(plan);
    absl::StatusOr<std::unique_ptr<Graph>> graph =
        Graph::Capture(lane, {.phase = Phase::kDecode, .size = kRows}, step,
                       {.plan = &*plan, .scratch = workspace});
    EXPECT_OK(graph);
    return graph.ok() ? *std::move(graph) : nullptr;
  }
  std::unique_ptr<Graph> Capture() {
    return Capture(*toy_.lane, ToyStep(toy_, kRows), toy_.workspace);
  }

  std::uint64_t launches() { return toy_.device->calls().succeeded(Call::kLaunchGraph); }

  void ExpectReplays(Graph& graph, float first) {
    SetToyInput(toy_, first);
    ASSERT_OK(graph.Replay());
    ASSERT_OK(toy_.lane->Synchronize());
    EXPECT_EQ(ToyOutput(toy_.staging_out, kRows), ToyExpected(first, kRows));
  }
  // Refused as `kind`, naming the graph and `object`, with no launch made.
  void ExpectRefused(Graph& graph, ErrorKind kind, const std::string& object) {
    const std::uint64_t before = launches(), replays = graph.replays();
    const absl::Status refused = graph.Replay();
    ASSERT_THAT(refused, IsErrorKind(kind));
    EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("decode/8"), HasSubstr(object)));
    EXPECT_EQ(launches(), before);
    EXPECT_EQ(graph.replays(), replays);
  }

  Toy toy_;
};

TEST_F(ReplayGuardTest, AsleepIsAnErrorNamingGraphAndTagAndWakeRestoresReplay) {
  const auto graph = Capture();
  ASSERT_NE(graph, nullptr);
  ExpectReplays(*graph, 5);
  for (const char* tag : {"weights", "state", "workspace"}) {
    ASSERT_OK(toy_.Sleep({tag}));
    ExpectRefused(*graph, ErrorKind::kAsleep, tag);
    ExpectRefused(*graph, ErrorKind::kAsleep, tag);  // a refusal verifies nothing
    ASSERT_OK(toy_.Wake({tag}));
    ExpectReplays(*graph, 6);
  }
  ASSERT_OK(toy_.Sleep({"weights", "state", "kv", "workspace"}));
  ExpectRefused(*graph, ErrorKind::kAsleep, "decode/8");
  ASSERT_OK(toy_.Wake({"weights", "state", "kv", "workspace"}));
  ExpectReplays(*graph, 5);
}

TEST_F(ReplayGuardTest, TagsTheGraphDoesNotUseMaySleep) {
  const auto graph = Capture();
  ASSERT_NE(graph, nullptr);
  ASSERT_OK(toy_.Sleep({"kv"}));
  ExpectReplays(*graph, 5);
  ASSERT_OK(toy_.Wake({"kv"}));
  ExpectReplays(*graph, 6);
}

TEST_F(ReplayGuardTest, UndefinedContentsRefuseReplayUntilRefilled) {
  const Step reads_kv = [this](StepContext& c) {
    return ToyAdd(c, c.Resolve(toy_.kv), c.Resolve(toy_.kv), c.Resolve(toy_.output), kRows);
  };
  const auto graph = Capture(*toy_.lane, reads_kv, {});
  ASSERT_NE(graph, nullptr);
  ASSERT_OK(graph->Replay());
  ASSERT_OK(toy_.Sleep({"kv"}));
  ASSERT_OK(toy_.Wake({"kv"}));
  ExpectRefused(*graph, ErrorKind::kUndefinedContents, "kv");
  toy_.arena->SetUndefined(toy_.kv, false);
  EXPECT_OK(graph->Replay());
  EXPECT_OK(toy_.lane->Synchronize());
}

TEST_F(ReplayGuardTest, EagerRunsAreRefusedWhileAnythingIsAsleepOrUndefined) {
  const Step nothing = [](StepContext&) { return absl::OkStatus(); };
  EXPECT_OK(RunEager(*toy_.lane, "eager", nothing, {}));
  ASSERT_OK(toy_.Sleep({"kv"}));
  EXPECT_THAT(RunEager(*toy_.lane, "eager", nothing, {}), IsErrorKind(ErrorKind::kAsleep));
  ASSERT_OK(toy_.Wake({"kv"}));
  EXPECT_THAT(RunEager(*toy_.lane, "eager", nothing, {}),
              IsErrorKind(ErrorKind::kUndefinedContents));
}

TEST_F(ReplayGuardTest, ReplayDuringATransitionIsBusyAndSleepWaitsForRunningReplays) {
  const auto graph = Capture();
  ASSERT_NE(graph, nullptr);
  SetToyInput(toy_, 5);
  std::atomic<bool> asleep{false};
  absl::Status slept;
  std::thread sleeper;
  {
    Gate gate(*toy_.device, toy_.lane->stream());
    ASSERT_OK(gate.status());
    ASSERT_OK(graph->Replay());  // stands behind the gate
    gate.WaitUntilReached();
    sleeper = std::thread([&] {
      slept = toy_.Sleep({"state", "workspace"});
      asleep = true;
    });
    while (!toy_.arena->gate().closed()) std::this_thread::yield();
    ExpectRefused(*graph, ErrorKind::kBusy, "decode/8");
    EXPECT_THAT(CaptureStep(*toy_.lane, "capture", ToyStep(toy_, kRows), {}),
                IsErrorKind(ErrorKind::kBusy));
    EXPECT_THAT(RunEager(*toy_.lane, "eager", ToyStep(toy_, kRows), {}), testing::Not(IsOk()));
    EXPECT_FALSE(asleep);
  }
  sleeper.join();
  ASSERT_OK(slept);
  EXPECT_EQ(ToyOutput(toy_.staging_out, kRows), ToyExpected(5, kRows))
      << "the held replay ran whole";
  ExpectRefused(*graph, ErrorKind::kAsleep, "state");
  ASSERT_OK(toy_.Wake({"state", "workspace"}));
  ExpectReplays(*graph, 6);
}

TEST_F(ReplayGuardTest, ASleepThatMissesItsDeadlineLeavesReplayPossible) {
  const auto graph = Capture();
  ASSERT_NE(graph, nullptr);
  {
    Gate gate(*toy_.device, toy_.lane->stream());
    ASSERT_OK(gate.status());
    gate.WaitUntilReached();
    EXPECT_THAT(toy_.residency->Sleep({"state"}, Soon(20)),
                IsErrorKind(ErrorKind::kDeadlineExceeded));
  }
  ExpectReplays(*graph, 5);
}

TEST_F(ReplayGuardTest, ALaunchThatFailsIsTheGraphsErrorAndCountsNothing) {
  const auto graph = Capture();
  ASSERT_NE(graph, nullptr);
  toy_.device->calls().FailAt(1, {Call::kLaunchGraph});
  const absl::Status failed = graph->Replay();
  EXPECT_THAT(failed, IsErrorKind(ErrorKind::kDriver));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("decode/8"));
  EXPECT_EQ(graph->replays(), 0u);
  ExpectReplays(*graph, 5);
}

// Replays on one lane until told to stop; every answer must be OK or a documented refusal.
void ReplayUntil(const std::atomic<bool>& stop, Graph& graph, std::uint64_t& replayed,
                 std::vector<absl::Status>& wrong) {
  while (!stop) {
    const absl::Status status = graph.Replay();
    if (status.ok()) {
      // Now and then wait, so that the queue stays short and drains are quick.
      if (++replayed % 4 == 0) {
        const absl::Status done = graph.lane().Synchronize();
        if (!done.ok()) wrong.push_back(done);
      }
    } else if (!IsErrorKind(status, ErrorKind::kBusy) && !IsErrorKind(status, ErrorKind::kAsleep)) {
      wrong.push_back(status);
    } else {
      std::this_thread::yield();
    }
  }
}

TEST_F(ReplayGuardTest, TwoLanesReplayWhileAThirdThreadSleepsAndWakes) {
  constexpr int kRounds = 200;
  ASSERT_OK_AND_ASSIGN(const auto lane2, Lane::Create(*toy_.arena, "lane2"));
  const auto graph1 = Capture();
  const auto graph2 = Capture(*lane2, ToyStep(toy_, kRows, SecondIo(toy_)), toy_.workspace2);
  ASSERT_TRUE(graph1 != nullptr && graph2 != nullptr);
  SetToyInput(toy_, 5);
  std::atomic<bool> stop{false};
  std::uint64_t replayed1 = 0, replayed2 = 0;
  std::vector<absl::Status> wrong1, wrong2;
  std::thread one([&] { ReplayUntil(stop, *graph1, replayed1, wrong1); });
  std::thread two([&] { ReplayUntil(stop, *graph2, replayed2, wrong2); });
  absl::Status transitions;
  for (int round = 0; round < kRounds && transitions.ok(); ++round) {
    // Mostly the cheap tag; now and then what is kept, which is copied and hashed.
    const std::vector<std::string> tags = round % 25 == 0
                                              ? std::vector<std::string>{"state", "workspace"}
                                              : std::vector<std::string>{"workspace"};
    transitions = toy_.Sleep(tags);
    if (transitions.ok()) transitions = toy_.Wake(tags);
  }
  stop = true;
  one.join();
  two.join();
  EXPECT_OK(transitions);
  for (const absl::Status& status : wrong1) ADD_FAILURE() << status;
  for (const absl::Status& status : wrong2) ADD_FAILURE() << status;
  ASSERT_OK(lane2->Synchronize());
  ExpectReplays(*graph1, 5);
  ASSERT_OK(graph2->Replay());
  ASSERT_OK(lane2->Synchronize());
  EXPECT_EQ(ToyOutput(toy_.staging_out2, kRows), ToyExpected(5, kRows));
  EXPECT_EQ(graph1->replays() + graph2->replays(), replayed1 + replayed2 + 2);
}

}  // namespace
}  // namespace holdfast
