// Verifies that the bench of sleep measures what it says, and judges goals only where they hold.
#include "tools/sleep_goals.h"

#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"
#include "tools/sleep_report.h"

namespace holdfast {
namespace {

SleepCase SmallCase() {
  return {.name = "small",
          .arena = {.kept_bytes = 8 * kMiB, .dropped_bytes = 4 * kMiB, .chunk_bytes = 4 * kMiB},
          .cycles = 2};
}

TEST(SleepGoalsTest, ACaseCountsWhatMovedByTag) {
  auto device = TestDevice();
  ASSERT_OK_AND_ASSIGN(const SleepResult result, RunSleepCase(*device, SmallCase()));
  ASSERT_EQ(result.cycles.size(), 2u);
  const TransitionReport& first = result.cycles[0].kept_sleep.report;
  const TransitionReport& later = result.cycles[1].kept_sleep.report;
  EXPECT_EQ(first.tags[0].kept_bytes, 8 * kMiB);
  EXPECT_EQ(later.tags[0].clean_bytes, 8 * kMiB);
  EXPECT_EQ(later.tags[0].kept_bytes, 0u);
  EXPECT_EQ(result.cycles[0].dropped_sleep.report.freed_bytes, 4 * kMiB);
  EXPECT_EQ(result.own_bytes_asleep, 0u);
  EXPECT_EQ(result.backing_bytes, 8 * kMiB);
  EXPECT_EQ(result.plain.bytes, 8 * kMiB);
  EXPECT_GT(result.plain.out_seconds, 0);
  EXPECT_TRUE(device->calls().Balanced());
}

TEST(SleepGoalsTest, OnlyTheRewrittenLeavesMove) {
  auto device = TestDevice();
  SleepCase c = SmallCase();
  c.arena.sealed = false;
  c.changed = 0.25;  // one leaf of four
  ASSERT_OK_AND_ASSIGN(const SleepResult result, RunSleepCase(*device, c));
  EXPECT_EQ(result.cycles[1].kept_sleep.report.tags[0].kept_bytes, kHashLeafBytes);
}

TEST(SleepGoalsTest, ContentsLoadedThroughThePoolAreNotCopiedAgain) {
  auto device = TestDevice();
  SleepCase c = SmallCase();
  c.through_pool = true;
  ASSERT_OK_AND_ASSIGN(const SleepResult result, RunSleepCase(*device, c));
  EXPECT_EQ(result.cycles[0].kept_sleep.report.tags[0].kept_bytes, 0u);
  EXPECT_EQ(result.cycles[0].kept_sleep.report.tags[0].clean_bytes, 8 * kMiB);
}

TEST(SleepGoalsTest, AMissedGoalFailsOnlyWhereItIsJudged) {
  GoalSuite suite;
  suite.rows = {{.item = "quick", .unit = "s", .figure = 1, .goal = 2},
                {.item = "slow", .unit = "s", .figure = 3, .goal = 2}};
  EXPECT_TRUE(suite.passed());
  suite.judged = true;
  EXPECT_FALSE(suite.passed());
  EXPECT_NE(GoalText({}, suite).find("MISSED by 1.0000 s"), std::string::npos);
  suite.rows[1] = {.item = "all", .unit = "rounds", .figure = 99, .goal = 100, .at_least = true};
  EXPECT_FALSE(suite.passed());
  suite.rows[1].figure = 100;
  EXPECT_TRUE(suite.passed());
}

TEST(SleepGoalsTest, BadCasesNameTheFlag) {
  auto device = TestHostDevice();
  const auto flag_of = [&](void (*change)(SleepCase&)) {
    SleepCase c = SmallCase();
    change(c);
    const absl::StatusOr<SleepResult> result = RunSleepCase(*device, c);
    EXPECT_THAT(result, IsErrorKind(ErrorKind::kInvalidArgument));
    return GetErrorInfo(result.status()).value_or(ErrorInfo{}).object;
  };
  EXPECT_EQ(flag_of([](SleepCase& c) { c.cycles = 0; }), "--cycles");
  EXPECT_EQ(flag_of([](SleepCase& c) { c.changed = -0.1; }), "--changed");
  EXPECT_EQ(flag_of([](SleepCase& c) { c.pause_seconds = -1; }), "--pause");
  EXPECT_EQ(flag_of([](SleepCase& c) { c.arena.spans = 0; }), "--spans");
  EXPECT_EQ(flag_of([](SleepCase& c) { c.arena.kept_bytes = 0; }), "--bytes");
}

}  // namespace
}  // namespace holdfast
