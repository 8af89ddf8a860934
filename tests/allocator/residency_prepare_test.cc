// Verifies that host memory can be had ahead of time, and given back.
#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

std::uint64_t Allocations(ResidencyRig& rig) {
  return rig.device->calls().succeeded(Call::kAllocateHost);
}

TEST(ResidencyPrepareTest, PreparedSleepAllocatesNothing) {
  for (const bool in_background : {false, true}) {
    ResidencyRig rig;
    const std::uint64_t g = rig.device->info().granularity;
    ASSERT_OK(in_background ? rig.residency->PrepareInBackground({"weights", "state"})
                            : rig.residency->Prepare({"weights", "state"}));
    EXPECT_EQ(rig.residency->backing_bytes(), rig.WeightBytes() + g);
    ASSERT_OK(rig.residency->Prepare({"weights", "state"}));  // nothing more, and it waits
    const std::uint64_t before = Allocations(rig);
    ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
    EXPECT_EQ(Allocations(rig), before);
    ASSERT_OK(rig.residency->Wake(AllTags()));
    EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
  }
}

// A sleep takes what is still being made.
TEST(ResidencyPrepareTest, SleepCollectsWhatIsBeingMade) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->PrepareInBackground({"weights"}));
  ASSERT_OK(rig.residency->PrepareInBackground({"weights", "state"}));
  ASSERT_OK(rig.residency->Sleep({"state"}, Soon()));
  ASSERT_OK(rig.residency->Sleep({"weights"}, Soon()));
  EXPECT_EQ(rig.residency->backing_bytes(), rig.WeightBytes() + rig.device->info().granularity);
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.Read("w1"), rig.Expected("w1", 2));
}

// The error of a background order comes with the next sleep; the one after begins anew.
TEST(ResidencyPrepareTest, ErrorsOfTheBackgroundAreHeardOnce) {
  ResidencyRig rig;
  const ResidencyRig::State before = rig.Look();
  rig.device->calls().FailAt(1, {Call::kAllocateHost});
  ASSERT_OK(rig.residency->PrepareInBackground({"state"}));
  EXPECT_THAT(rig.residency->Sleep({"state"}, Soon()), IsErrorKind(ErrorKind::kDriver));
  EXPECT_TRUE(rig.device->calls().Disarm());
  EXPECT_EQ(rig.Look(), before);
  ASSERT_OK(rig.residency->Sleep({"state"}, Soon()));
  ASSERT_OK(rig.residency->Wake({"state"}));
}

TEST(ResidencyPrepareTest, PrepareObeysTheCap) {
  ResidencyRig rig({.host_only = false, .device = {}, .residency = {.host_cap_bytes = 4 * kKiB}});
  EXPECT_THAT(rig.residency->Prepare({"state"}), IsErrorKind(ErrorKind::kOutOfHostMemory));
  EXPECT_THAT(rig.residency->PrepareInBackground({"state"}),
              IsErrorKind(ErrorKind::kOutOfHostMemory));
  EXPECT_THAT(rig.residency->Prepare({}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(rig.residency->backing_bytes(), 0u);
  EXPECT_OK(rig.residency->Prepare({"kv_cache"}));  // dropped: needs none
}

TEST(ResidencyPrepareTest, TrimGivesBackWhatHoldsNothing) {
  ResidencyRig rig;
  const std::uint64_t g = rig.device->info().granularity;
  ASSERT_OK(rig.residency->Prepare({"state"}));
  EXPECT_EQ(rig.residency->TrimHost(/*forget_clean=*/false), g);
  EXPECT_EQ(rig.residency->backing_bytes(), 0u);

  ASSERT_OK(rig.residency->Sleep({"weights", "state"}, Soon()));
  EXPECT_EQ(rig.residency->TrimHost(/*forget_clean=*/true), 0u);  // the only copy there is
  ASSERT_OK(rig.residency->Wake({"state"}));
  EXPECT_EQ(rig.residency->TrimHost(/*forget_clean=*/false), 0u);  // may save a copy yet
  EXPECT_EQ(rig.residency->TrimHost(/*forget_clean=*/true), g);
  EXPECT_EQ(rig.residency->backing_bytes(), rig.WeightBytes());
  ASSERT_OK(rig.residency->Wake({"weights"}));
  EXPECT_EQ(rig.Read("w0"), rig.Expected("w0", 1));
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept, rig.residency->Sleep({"state"}, Soon()));
  EXPECT_EQ(slept.tags[0].kept_bytes, g);
  ASSERT_OK(rig.residency->Wake({"state"}));
}

// Backups of what stays awake only save a copy: they make way for those that are needed.
TEST(ResidencyPrepareTest, SpareBackupsMakeWay) {
  const std::uint64_t g = TestDevice()->info().granularity;
  const std::uint64_t weights = ResidencyRig().WeightBytes();
  ResidencyRig rig({.host_only = false, .device = {}, .residency = {.host_cap_bytes = weights}});
  ASSERT_OK(rig.residency->Sleep({"weights"}, Soon()));
  EXPECT_THAT(rig.residency->Sleep({"state"}, Soon()), IsErrorKind(ErrorKind::kOutOfHostMemory));
  ASSERT_OK(rig.residency->Wake({"weights"}));
  ASSERT_OK(rig.residency->Sleep({"state"}, Soon()));
  EXPECT_LE(rig.residency->backing_bytes(), weights);
  EXPECT_THAT(rig.residency->Sleep({"weights"}, Soon()), IsErrorKind(ErrorKind::kOutOfHostMemory));
  ASSERT_OK(rig.residency->Wake({"state"}));
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept, rig.residency->Sleep({"weights"}, Soon()));
  EXPECT_EQ(slept.tags[0].kept_bytes, weights);
  ASSERT_OK(rig.residency->Wake({"weights"}));
  EXPECT_EQ(rig.Read("w1"), rig.Expected("w1", 2));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
  EXPECT_LE(g, weights);
}

}  // namespace
}  // namespace holdfast
