// Verifies the grammar of plans, what it refuses, and how the driver takes a subject through one.
#include "testing/cycle_plan.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "testing/cycle_driver.h"
#include "testing/matchers.h"
#include "testing/toy_subject.h"
#include "tests/testing/test_options.h"

namespace holdfast::testing {
namespace {

TEST(CyclePlanTest, TextAndBuilderMakeTheSamePlan) {
  const absl::StatusOr<CyclePlan> parsed = CyclePlan::Parse(
      "sleep all; wake weights,state ;fail-at 3 wake kv; scribble; run 7; wake; run");
  ASSERT_THAT(parsed, IsOk());
  CyclePlan built;
  built.Sleep().Wake({"weights", "state"}).Wake({"kv"}).FailingAt(3).Scribble().Run(7).Wake().Run();
  EXPECT_EQ(*parsed, built);
  EXPECT_EQ(*CyclePlan::Parse(built.Text()), built);
}

TEST(CyclePlanTest, RepeatsAreWrittenOut) {
  const absl::StatusOr<CyclePlan> plan =
      CyclePlan::Parse("repeat 2 (sleep a, b; repeat 2 (wake a); wake)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->Text(),
            "sleep a,b; wake a; wake a; wake all; sleep a,b; wake a; wake a; wake all");
}

struct BadPlan {
  const char* name;
  const char* text;
  const char* object;  // where
};
class CyclePlanRefuses : public ::testing::TestWithParam<BadPlan> {};

TEST_P(CyclePlanRefuses, NamingThePlace) {
  EXPECT_THAT(CyclePlan::Parse(GetParam().text),
              FailsWith(ErrorKind::kInvalidArgument, GetParam().object));
}
INSTANTIATE_TEST_SUITE_P(
    Plans, CyclePlanRefuses,
    ::testing::Values(BadPlan{"Nothing", "", "character 1"},
                      BadPlan{"Blank", "  \n ", "character 5"},
                      BadPlan{"OtherWord", "sleep; nap", "character 8"},
                      BadPlan{"EndsInSeparator", "sleep;", "character 7"},
                      BadPlan{"FailsAtNoCall", "fail-at 0 wake", "character 9"},
                      BadPlan{"FailsAtNoNumber", "fail-at soon wake", "character 9"},
                      BadPlan{"FailsARun", "fail-at 2 run", "character 11"},
                      BadPlan{"RunWithWord", "run fast", "character 5"},
                      BadPlan{"TagMissing", "sleep a,", "character 7"},
                      BadPlan{"TwoTagsWithoutComma", "sleep a b", "character 9"},
                      BadPlan{"AllAmongTags", "wake a,all", "character 6"},
                      BadPlan{"RepeatNever", "repeat 0 (run)", "character 8"},
                      BadPlan{"RepeatTooOften", "repeat 1001 (run)", "character 8"},
                      BadPlan{"RepeatUnclosed", "repeat 2 (run", "character 14"},
                      BadPlan{"Unopened", "run)", "character 4"},
                      BadPlan{"TooManySteps", "repeat 1000 (repeat 101 (run))", "character 30"}),
    [](const ::testing::TestParamInfo<BadPlan>& bad) { return std::string(bad.param.name); });

TEST(CyclePlanTest, RandomPlansDependOnTheSeedAloneAndEndAwake) {
  const std::vector<std::string> tags = {"a", "b", "c"};
  const CyclePlan plan = CyclePlan::Random(5, tags, 50);
  EXPECT_EQ(plan, CyclePlan::Random(5, tags, 50));
  EXPECT_NE(plan, CyclePlan::Random(6, tags, 50));
  EXPECT_EQ(plan.steps().back().Text(), "wake all");
  EXPECT_TRUE(absl::StrContains(plan.Text(), "fail-at"));
  EXPECT_EQ(*CyclePlan::Parse(plan.Text()), plan);
}

class CycleDriverTest : public ::testing::Test {
 protected:
  CycleDriverTest() : device_(OpenTestDevice()) {
    absl::StatusOr<std::unique_ptr<Subject>> subject = ToySubject::Create(*device_, {});
    EXPECT_THAT(subject, IsOk());
    subject_ = *std::move(subject);
  }
  absl::StatusOr<std::vector<CycleOutcome>> Drive(const std::string& text) {
    const absl::StatusOr<CyclePlan> plan = CyclePlan::Parse(text);
    if (!plan.ok()) return plan.status();
    return CycleDriver(*subject_, {.seed = 3, .scribble = {}}).Drive(*plan);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Subject> subject_;
};

TEST_F(CycleDriverTest, TakesASubjectThroughFailuresAndBack) {
  const absl::StatusOr<Picture> before = TakePicture(*subject_);
  ASSERT_THAT(before, IsOk());
  const auto outcomes =
      Drive("run; sleep all; run; fail-at 3 wake; wake weights; fail-at 1000000 wake; run");
  ASSERT_THAT(outcomes, IsOk());
  const std::vector<CycleOutcome>& step = *outcomes;
  EXPECT_THAT(step[2].status, FailsWith(ErrorKind::kAsleep));
  EXPECT_FALSE(step[2].outputs.has_value());
  EXPECT_TRUE(step[3].fired);
  EXPECT_THAT(step[3].status, FailsWith(ErrorKind::kDriver));
  EXPECT_FALSE(step[5].fired);
  ASSERT_TRUE(step[0].outputs.has_value() && step[6].outputs.has_value());
  EXPECT_THAT(*step[6].outputs, SameOutputs(*step[0].outputs));
  EXPECT_THAT(TakePicture(*subject_), SameAddresses(*before));
}

TEST_F(CycleDriverTest, ATagThatIsNotThereEndsTheDriveAtItsStep) {
  const auto outcomes = Drive("sleep kv; wake nowhere; run");
  EXPECT_THAT(outcomes, FailsWith(ErrorKind::kNotFound));
  EXPECT_TRUE(absl::StrContains(outcomes.status().message(), "step 2 (wake nowhere)"))
      << outcomes.status();
}

// Negative control: what only looks like a planted failure is an error.
TEST_F(CycleDriverTest, AFailureThatNobodyPlantedIsAnError) {
  subject_->residency().PlantFaults({.flip_bit = true});
  EXPECT_THAT(Drive("sleep all; wake all"), FailsWith(ErrorKind::kCorrupted));
}

}  // namespace
}  // namespace holdfast::testing
