// Sleep and wake under a whole engine: the same logit bits after any cycle and after any failure.
#include "tests/runtime/engine_fixture.h"

namespace holdfast {
namespace {

constexpr std::chrono::milliseconds kDeadline{20'000};

std::vector<std::string> AllTags(TestEngine& test) { return test->arena().tags(); }

TEST(EngineResidencyTest, FullAndSelectiveCyclesGiveTheSameLogitBits) {
  // Verifies: invariants 1, 2, 7: addresses, kept bytes and outputs are equal after each kind of
  // cycle, and the graphs' words are the same when captured again.
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", SmallOptions()));
  const std::vector<GenerateRequest> requests = MixedRequests(8);
  ASSERT_OK_AND_ASSIGN(const auto golden, test->Generate(requests));
  const std::vector<std::vector<std::string>> cycles = {AllTags(test),
                                                        {kCacheTag, kWorkspaceTag},
                                                        AllTags(test),
                                                        {kWeightsTag},
                                                        {kStateTag, kTablesTag}};
  for (const std::vector<std::string>& tags : cycles) {
    ASSERT_OK_AND_ASSIGN(const MemoryUse before, test.device->Memory());
    ASSERT_OK_AND_ASSIGN(const std::uint64_t steps, test->StepCount());
    ASSERT_OK_AND_ASSIGN(const TransitionReport slept, test->Sleep(tags, kDeadline));
    EXPECT_EQ(test->state(), EngineState::kAsleep);
    ASSERT_OK_AND_ASSIGN(const MemoryUse asleep, test.device->Memory());
    EXPECT_EQ(before.own_bytes - asleep.own_bytes, slept.freed_bytes);
    ASSERT_OK(test->Wake(tags));
    EXPECT_EQ(test->state(), EngineState::kServing);
    ASSERT_OK_AND_ASSIGN(const MemoryUse after, test.device->Memory());
    EXPECT_EQ(after.own_bytes, before.own_bytes);
    ASSERT_OK_AND_ASSIGN(const std::uint64_t steps_after, test->StepCount());
    EXPECT_EQ(steps_after, steps);  // mutable state is kept
    ASSERT_OK_AND_ASSIGN(const auto changed, test->graphs().Recapture(test->workspace()));
    EXPECT_TRUE(changed.empty()) << changed.front();
    ASSERT_OK_AND_ASSIGN(const auto again, test->Generate(requests));
    EXPECT_EQ(golden, again);
  }
}

const TagTransition& RowOf(const TransitionReport& report, const std::string& tag) {
  static const TagTransition kNone;
  for (const TagTransition& row : report.tags) {
    if (row.tag == tag) return row;
  }
  return kNone;
}

TEST(EngineResidencyTest, WeightsLoadedThroughThePoolAreNotCopiedByTheFirstSleep) {
  // Verifies: the pool holds the weights from the start, sleep copies none of them, and outputs
  // after the wake are those of an engine that was loaded the plain way (the control: its first
  // sleep copies them all).
  const std::vector<GenerateRequest> requests = MixedRequests(4);
  std::vector<Completion> golden;
  std::uint64_t weights = 0;
  {
    ASSERT_OK_AND_ASSIGN(TestEngine plain, MakeEngine("query_latent", SmallOptions()));
    { ASSERT_OK_AND_ASSIGN(golden, plain->Generate(requests)); }
    ASSERT_OK_AND_ASSIGN(const TransitionReport slept, plain->Sleep(AllTags(plain), kDeadline));
    EXPECT_EQ(RowOf(slept, kWeightsTag).clean_bytes, 0u);
    weights = RowOf(slept, kWeightsTag).kept_bytes;
    EXPECT_GT(weights, 0u);
  }
  EngineOptions options = SmallOptions();
  options.load_through_pool = true;
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", options));
  EXPECT_GT(test->residency().backing_bytes(), 0u);
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept, test->Sleep(AllTags(test), kDeadline));
  EXPECT_EQ(RowOf(slept, kWeightsTag).kept_bytes, 0u);
  EXPECT_EQ(RowOf(slept, kWeightsTag).clean_bytes, weights);
  ASSERT_OK(test->Wake(AllTags(test)));
  ASSERT_OK_AND_ASSIGN(const auto again, test->Generate(requests));
  EXPECT_EQ(golden, again);
}

TEST(EngineResidencyTest, GenerateWhileAsleepIsRefusedByTagWithoutALaunch) {
  // Verifies: a request to a sleeping engine is an error that names the tag; half awake is still
  // asleep.
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", SmallOptions()));
  const std::vector<GenerateRequest> requests = MixedRequests(2);
  ASSERT_OK_AND_ASSIGN(const auto golden, test->Generate(requests));
  ASSERT_OK(test->Sleep(AllTags(test), kDeadline));
  const std::uint64_t launches = test.device->calls().succeeded(Call::kLaunchGraph);
  EXPECT_THAT(test->Generate(requests), IsErrorKind(ErrorKind::kAsleep));
  ASSERT_OK(test->Wake({kWeightsTag, kWorkspaceTag, kStateTag, kTablesTag}));
  EXPECT_EQ(test->state(), EngineState::kAsleep);
  EXPECT_THAT(test->Generate(requests), IsErrorKind(ErrorKind::kAsleep));
  EXPECT_EQ(test.device->calls().succeeded(Call::kLaunchGraph), launches);
  ASSERT_OK(test->Wake({kCacheTag}));
  ASSERT_OK_AND_ASSIGN(const auto again, test->Generate(requests));
  EXPECT_EQ(golden, again);
}

// Fails every device call of a transition in turn, until one run has no call left to fail.
class FailEachCall : public ::testing::TestWithParam<bool> {};

TEST_P(FailEachCall, LeavesThePreviousStateAndARetryGivesTheSameLogits) {
  // Verifies: invariant 3 for every k: state, own bytes and outputs as before, and the retry
  // succeeds.
  const bool in_sleep = GetParam();
  EngineOptions options = SmallOptions();
  options.max_batch = 2;
  options.max_prefill_tokens = 16;
  TestEngine test;
  { ASSERT_OK_AND_ASSIGN(test, MakeEngine("query_latent", options)); }
  const std::vector<GenerateRequest> requests = MixedRequests(2, 3);
  ASSERT_OK_AND_ASSIGN(const auto golden, test->Generate(requests));
  CallTable& calls = test.device->calls();
  std::uint64_t failed = 0;
  for (std::uint64_t k = 1;; ++k) {
    if (!in_sleep) {
      ASSERT_OK(test->Sleep(AllTags(test), kDeadline));
    }
    ASSERT_OK_AND_ASSIGN(const MemoryUse before, test.device->Memory());
    const EngineState state = test->state();
    calls.FailAt(k);
    const absl::Status status = in_sleep ? test->Sleep(AllTags(test), kDeadline).status()
                                         : test->Wake(AllTags(test)).status();
    const bool fired = calls.Disarm();
    if (fired) {
      ++failed;
      ASSERT_FALSE(status.ok()) << "call " << k << " failed unnoticed";
      ASSERT_OK_AND_ASSIGN(const MemoryUse after, test.device->Memory());
      ASSERT_EQ(after.own_bytes, before.own_bytes) << "call " << k;
      ASSERT_EQ(test->state(), state) << "call " << k;
      if (in_sleep) {
        ASSERT_OK_AND_ASSIGN(const auto unchanged, test->Generate(requests));
        ASSERT_EQ(golden, unchanged) << "after call " << k;
        ASSERT_OK(test->Sleep(AllTags(test), kDeadline));
      } else {
        ASSERT_OK(test->Wake(AllTags(test)));
      }
    } else {
      ASSERT_OK(status);
    }
    if (in_sleep) {
      ASSERT_OK(test->Wake(AllTags(test)));
    }
    ASSERT_OK_AND_ASSIGN(const auto again, test->Generate(requests));
    ASSERT_EQ(golden, again) << "after call " << k;
    if (!fired) break;
  }
  EXPECT_GT(failed, 10u);  // the loop really walked through a transition
  test.engine.reset();
  EXPECT_TRUE(calls.Balanced());
}

INSTANTIATE_TEST_SUITE_P(Transitions, FailEachCall, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Sleep" : "Wake"; });

}  // namespace
}  // namespace holdfast
