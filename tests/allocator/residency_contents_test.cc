// Verifies what every kind of span holds after wake: kept, zeroed, poisoned, undefined, refilled.
#include <set>

#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

TEST(ResidencyContentsTest, DroppedSpansComeBackAsDeclared) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_TRUE(AllBytesAre(rig.Read("kv.zero"), 0));
  EXPECT_TRUE(AllBytesAre(rig.Read("kv.poison"), 0xFF));
  // Scratch needs no contents: it is ready though nothing was written.
  EXPECT_OK(rig.arena->CheckReady({"kv_cache", "workspace"}));
}

TEST(ResidencyContentsTest, RefillRunsBeforeTheTagCountsAsAwake) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->Sleep({"tables"}, Soon()));
  bool asleep_inside = false, gate_open_inside = false;
  rig.refill_override = [&] {
    asleep_inside = rig.residency->asleep("tables");
    gate_open_inside = rig.arena->gate().Enter().ok();  // other tags replay during a wake
    return absl::OkStatus();
  };
  ASSERT_OK(rig.residency->Wake({"tables"}));
  EXPECT_EQ(rig.refills, 1);
  EXPECT_TRUE(asleep_inside);
  EXPECT_TRUE(gate_open_inside);

  rig.refill_override = nullptr;
  ASSERT_OK(rig.residency->Sleep({"tables"}, Soon()));
  ASSERT_OK(rig.residency->Wake({"tables"}));
  EXPECT_EQ(rig.Read("table"), rig.Expected("table", ResidencyRig::kTableSeed));
  EXPECT_OK(rig.arena->CheckReady({"tables"}));
}

TEST(ResidencyContentsTest, FailingRefillFailsTheWake) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  rig.refill_override = [] {
    return MakeError({.kind = ErrorKind::kNotFound, .object = "file"}, "gone");
  };
  const auto woken = rig.residency->Wake(AllTags());
  EXPECT_THAT(woken, IsErrorKind(ErrorKind::kNotFound));
  EXPECT_THAT(std::string(woken.status().message()), testing::HasSubstr("table"));
  EXPECT_EQ(rig.device->Memory()->own_bytes, 0u);
  EXPECT_TRUE(rig.residency->asleep("weights"));
  rig.refill_override = nullptr;
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
}

// A cache that comes back undefined refuses replay until its owner says it is filled.
TEST(ResidencyContentsTest, UndefinedSpansRefuseReplayUntilFilled) {
  auto device = TestDevice();
  const std::uint64_t g = device->info().granularity;
  ASSERT_OK_AND_ASSIGN(auto arena,
                       Arena::Create(*device, {.groups = {{"kv", Role::kCache, 2 * g, g}}}));
  ASSERT_OK(arena->Reserve({.name = "zeroed", .tag = "kv", .role = Role::kCache, .bytes = 100}));
  ASSERT_OK_AND_ASSIGN(const SpanId open,
                       arena->Reserve({.name = "open",
                                       .tag = "kv",
                                       .role = Role::kCache,
                                       .bytes = 100,
                                       .wake_contents = WakeContents::kUndefined}));
  ASSERT_OK(arena->Reserve({.name = "uncommitted",
                            .tag = "kv",
                            .role = Role::kCache,
                            .bytes = g,
                            .alignment = g,
                            .wake_contents = WakeContents::kUndefined}));
  ASSERT_OK(arena->Commit(open));
  ASSERT_OK_AND_ASSIGN(auto residency, Residency::Create(*arena));
  EXPECT_OK(arena->CheckReady({"kv"}));
  ASSERT_OK(residency->Sleep({"kv"}, Soon()));
  ASSERT_OK(residency->Wake({"kv"}));
  const absl::Status ready = arena->CheckReady({"kv"});
  EXPECT_THAT(ready, IsErrorKind(ErrorKind::kUndefinedContents));
  EXPECT_EQ(GetErrorInfo(ready)->object, "open");
  arena->SetUndefined(open, false);
  EXPECT_OK(arena->CheckReady({"kv"}));
}

// Sizes that are no multiple of the granule sleep and wake; their logical size is unrounded. Field
// case 36.
TEST(ResidencyContentsTest, OddSizesSurviveSleep) {
  auto device = TestDevice();
  const std::uint64_t g = device->info().granularity;
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("test"));
  for (const std::uint64_t bytes : std::set<std::uint64_t>{1, 128, 6912, g - 1, g, g + 1}) {
    ASSERT_OK_AND_ASSIGN(auto arena,
                         Arena::Create(*device, {.groups = {{"w", Role::kMutable, bytes}}}));
    ASSERT_OK_AND_ASSIGN(const SpanId span,
                         arena->Reserve({.name = "w", .tag = "w", .bytes = bytes}));
    ASSERT_OK(arena->Commit(span));
    const Bytes contents = Pattern(bytes, bytes);
    WriteBytes(*device, *stream, arena->range(span).base, contents);
    ASSERT_OK_AND_ASSIGN(auto residency, Residency::Create(*arena));
    ASSERT_OK_AND_ASSIGN(const auto before, residency->HashKept());
    ASSERT_OK(residency->Sleep({"w"}, Soon()));
    EXPECT_EQ(device->Memory()->own_bytes, 0u);
    ASSERT_OK(residency->Wake({"w"}));
    ASSERT_OK_AND_ASSIGN(const auto after, residency->HashKept());
    EXPECT_EQ(before, after);
    EXPECT_EQ(arena->bytes_by_tag()[0].logical_bytes, bytes);
    EXPECT_EQ(ReadBytes(*device, *stream, arena->range(span)), contents);
  }
  stream.reset();
  EXPECT_TRUE(device->calls().Balanced());
}

// A group that is immutable but was never sealed is compared at every sleep: somebody may have
// written it.
TEST(ResidencyContentsTest, UnsealedImmutableSpansAreKeptLikeMutableOnes) {
  auto device = TestDevice();
  const std::uint64_t g = device->info().granularity;
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("test"));
  ASSERT_OK_AND_ASSIGN(auto arena,
                       Arena::Create(*device, {.groups = {{"w", Role::kImmutable, g, g}}}));
  ASSERT_OK_AND_ASSIGN(
      const SpanId span,
      arena->Reserve({.name = "w", .tag = "w", .role = Role::kImmutable, .bytes = 100}));
  ASSERT_OK(arena->Commit(span));
  ASSERT_OK_AND_ASSIGN(auto residency, Residency::Create(*arena));
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    WriteBytes(*device, *stream, arena->range(span).base, Pattern(100, seed));
    ASSERT_OK_AND_ASSIGN(const TransitionReport slept, residency->Sleep({"w"}, Soon()));
    EXPECT_EQ(slept.tags[0].kept_bytes, 4 * kKiB);
    ASSERT_OK(residency->Wake({"w"}));
    EXPECT_EQ(ReadBytes(*device, *stream, arena->range(span)), Pattern(100, seed));
  }
  // Sealed afterwards: what was backed up before the seal is not taken for clean.
  WriteBytes(*device, *stream, arena->range(span).base, Pattern(100, 3));
  ASSERT_OK(arena->Seal("w"));
  for (int cycle = 0; cycle < 2; ++cycle) {
    ASSERT_OK(residency->Sleep({"w"}, Soon()));
    ASSERT_OK(residency->Wake({"w"}));
    EXPECT_EQ(ReadBytes(*device, *stream, arena->range(span)), Pattern(100, 3));
  }
}

}  // namespace
}  // namespace holdfast
