// Verifies what sleep frees, what wake brings back, and that both are idempotent and by tag.
#include "allocator/residency.h"

#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

// Full and selective cycles: the same addresses, the same kept bytes, memory parity to the byte.
TEST(ResidencyTest, CyclesKeepAddressesBytesAndParity) {
  ResidencyRig rig;
  const ResidencyRig::State before = rig.Look();
  const std::vector<std::vector<std::string>> cycles = {
      AllTags(), {"kv_cache", "workspace"}, {"weights"}, {"state", "tables"}, AllTags()};
  for (const std::vector<std::string>& tags : cycles) {
    ASSERT_OK(rig.residency->Sleep(tags, Soon()));
    for (const std::string& tag : tags) EXPECT_TRUE(rig.residency->asleep(tag));
    EXPECT_LT(rig.device->Memory()->own_bytes, before.own_bytes);
    ASSERT_OK(rig.residency->Wake(tags));
    EXPECT_EQ(rig.Look(), before);
    EXPECT_EQ(rig.Read("w1"), rig.Expected("w1", 2));
    EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
  }
}

// A full sleep holds no page; every address is unmapped; reports add up.
TEST(ResidencyTest, SleepGivesEveryPageBack) {
  ResidencyRig rig;
  const std::uint64_t own = rig.device->Memory()->own_bytes;
  const std::uint64_t g = rig.device->info().granularity;
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept, rig.residency->Sleep(AllTags(), Soon()));
  EXPECT_EQ(rig.device->Memory()->own_bytes, 0u);
  EXPECT_EQ(slept.freed_bytes, own);
  const std::uint64_t weights = rig.WeightBytes();
  EXPECT_EQ(slept.backing_bytes, weights + g);
  EXPECT_EQ(slept.pageable_bytes, 0u);
  EXPECT_EQ(rig.residency->backing_bytes(), weights + g);
  for (const SpanInfo& span : rig.arena->spans()) {
    EXPECT_FALSE(rig.device->Query(span.range.base).mapped) << span.spec.name;
  }
  ASSERT_EQ(slept.tags.size(), AllTags().size());
  EXPECT_EQ(Row(slept, "weights")->kept_bytes, weights);
  EXPECT_EQ(Row(slept, "state")->kept_bytes, g);
  EXPECT_EQ(Row(slept, "kv_cache")->dropped_bytes, 2 * g);
  EXPECT_EQ(Row(slept, "tables")->dropped_bytes, g);
  for (const TagBytes& row : rig.arena->bytes_by_tag()) EXPECT_EQ(row.resident_bytes, 0u);
  EXPECT_GT(slept.seconds, 0.0);
  EXPECT_TRUE(slept.seconds_by_stage.contains("copy"));

  ASSERT_OK_AND_ASSIGN(const TransitionReport woken, rig.residency->Wake(AllTags()));
  EXPECT_EQ(woken.freed_bytes, own);
  EXPECT_EQ(Row(woken, "weights")->kept_bytes, weights);
  EXPECT_EQ(woken.attempts, 1u);
}

// A sealed group is copied once and not even compared; of all else what changed is copied.
TEST(ResidencyTest, CleanSealedBackupsAreNotCopiedAgain) {
  ResidencyRig rig;
  const std::uint64_t g = rig.device->info().granularity;
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  ASSERT_OK(rig.residency->Wake(AllTags()));
  rig.Write("state", 33);
  const std::uint64_t copies = rig.device->calls().succeeded(Call::kCopy);
  ASSERT_OK_AND_ASSIGN(const TransitionReport second, rig.residency->Sleep(AllTags(), Soon()));
  EXPECT_EQ(rig.device->calls().succeeded(Call::kCopy), copies + 1);  // state
  EXPECT_EQ(Row(second, "weights")->kept_bytes, 0u);
  EXPECT_EQ(Row(second, "weights")->clean_bytes, rig.WeightBytes());
  EXPECT_EQ(Row(second, "state")->kept_bytes, g);
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.Read("w0"), rig.Expected("w0", 1));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 33));
}

// Sealed groups come back read-only, the others writable.
TEST(ResidencyTest, AccessComesBackAsItWas) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  ASSERT_OK(rig.residency->Wake(AllTags()));
  const auto access = [&](const char* span) {
    return rig.device->Query(rig.arena->range(*rig.arena->Find(span)).base).access;
  };
  EXPECT_EQ(access("w1"), Access::kRead);
  EXPECT_EQ(access("state"), Access::kReadWrite);
  EXPECT_EQ(access("table"), Access::kReadWrite);  // immutable, but nobody sealed it
}

TEST(ResidencyTest, SleepAndWakeAreIdempotent) {
  ResidencyRig rig;
  ASSERT_OK_AND_ASSIGN(const TransitionReport awake, rig.residency->Wake(AllTags()));
  EXPECT_TRUE(awake.tags.empty());
  ASSERT_OK(rig.residency->Sleep({"state"}, Soon()));
  const std::uint64_t epoch = rig.arena->epoch();
  ASSERT_OK_AND_ASSIGN(const TransitionReport again, rig.residency->Sleep({"state"}, Soon()));
  EXPECT_TRUE(again.tags.empty());
  EXPECT_EQ(again.freed_bytes, 0u);
  EXPECT_EQ(rig.arena->epoch(), epoch);
  ASSERT_OK_AND_ASSIGN(const TransitionReport rest, rig.residency->Sleep(AllTags(), Soon()));
  EXPECT_EQ(Row(rest, "state"), nullptr);
  EXPECT_NE(Row(rest, "weights"), nullptr);
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
}

TEST(ResidencyTest, BadTagsAreRefusedAndNothingChanges) {
  ResidencyRig rig;
  const ResidencyRig::State before = rig.Look();
  const auto sleep = [&](const std::vector<std::string>& tags) {
    return rig.residency->Sleep(tags, Soon());
  };
  EXPECT_THAT(sleep({}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(sleep({"state", "state"}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(sleep({"state", "nobody"}), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_THAT(rig.residency->Wake({}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(rig.residency->Wake({"nobody"}), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_EQ(rig.Look(), before);
}

// While one tag sleeps, the others are ready and usable, and the sleeping one refuses.
TEST(ResidencyTest, OtherTagsStayUsable) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->Sleep({"kv_cache", "weights"}, Soon()));
  EXPECT_OK(rig.arena->CheckReady({"state", "workspace"}));
  EXPECT_OK(rig.arena->gate().Enter());
  rig.Write("state", 77);
  EXPECT_THAT(rig.arena->CheckReady({"state", "weights"}), IsErrorKind(ErrorKind::kAsleep));
  EXPECT_EQ(GetErrorInfo(rig.arena->CheckReady({"weights"}))->object, "weights");
  ASSERT_OK(rig.residency->Wake({"weights"}));
  EXPECT_OK(rig.arena->CheckReady({"state", "weights"}));
  EXPECT_THAT(rig.arena->CheckReady({"kv_cache"}), IsErrorKind(ErrorKind::kAsleep));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 77));
}

// Every committed transition changes the epoch; no-ops and failures do not.
TEST(ResidencyTest, EpochCountsTransitions) {
  ResidencyRig rig;
  const std::uint64_t epoch = rig.arena->epoch();
  ASSERT_OK(rig.residency->Sleep({"state"}, Soon()));
  EXPECT_EQ(rig.arena->epoch(), epoch + 1);
  ASSERT_OK(rig.residency->Wake({"state"}));
  EXPECT_EQ(rig.arena->epoch(), epoch + 2);
  EXPECT_FALSE(rig.residency->Sleep({"nobody"}, Soon()).ok());
  EXPECT_EQ(rig.arena->epoch(), epoch + 2);
}

TEST(ResidencyTest, NoPagesAreAddedToASleepingGroup) {
  auto device = TestDevice();
  const std::uint64_t g = device->info().granularity;
  ASSERT_OK_AND_ASSIGN(auto arena,
                       Arena::Create(*device, {.groups = {{"kv", Role::kCache, 4 * g, g}}}));
  ASSERT_OK_AND_ASSIGN(
      const SpanId kv,
      arena->Reserve({.name = "kv", .tag = "kv", .role = Role::kCache, .bytes = 4 * g}));
  ASSERT_OK(arena->Commit(kv, g));
  ASSERT_OK_AND_ASSIGN(auto residency, Residency::Create(*arena));
  ASSERT_OK(residency->Sleep({"kv"}, Soon()));
  EXPECT_THAT(arena->Commit(kv, 2 * g), IsErrorKind(ErrorKind::kAsleep));
  ASSERT_OK(residency->Wake({"kv"}));
  // More pages after a cycle are part of the next one.
  ASSERT_OK(arena->Commit(kv, 3 * g));
  ASSERT_OK(residency->Sleep({"kv"}, Soon()));
  EXPECT_EQ(device->Memory()->own_bytes, 0u);
  ASSERT_OK(residency->Wake({"kv"}));
  EXPECT_EQ(device->Memory()->own_bytes, 3 * g);
}

// Every physical page is created and released once, every mapping made and taken away.
TEST(ResidencyTest, CallsBalanceAtTheEnd) {
  ResidencyRig rig;
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
    ASSERT_OK(rig.residency->Wake(AllTags()));
  }
  ASSERT_OK(rig.residency->Sleep({"weights", "kv_cache"}, Soon()));
  rig.End();
  EXPECT_TRUE(rig.device->calls().Balanced());
  EXPECT_EQ(rig.device->Memory()->own_bytes, 0u);
}

}  // namespace
}  // namespace holdfast
