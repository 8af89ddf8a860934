// Verifies that every planted fault is caught by the proof it aims at.
#include "gtest/gtest.h"
#include "testing/gate.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

// A flipped bit in a backup names the span, and the wake stays undone. Without the flip it would
// pass.
TEST(ResidencyFaultsTest, FlippedBitNamesItsSpan) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  rig.residency->PlantFaults({.flip_bit = true});
  const auto woken = rig.residency->Wake(AllTags());
  EXPECT_THAT(woken, IsErrorKind(ErrorKind::kCorrupted));
  EXPECT_EQ(GetErrorInfo(woken.status())->object, "w0");
  const std::string message(woken.status().message());
  EXPECT_THAT(message, testing::HasSubstr("leaf 0"));
  EXPECT_THAT(message, testing::HasSubstr("weights/immutable"));
  EXPECT_TRUE(rig.residency->asleep("weights"));
  EXPECT_EQ(rig.device->Memory()->own_bytes, 0u);
  // The damage stays known: another wake says the same, and other tags are not held up by it.
  EXPECT_THAT(rig.residency->Wake(AllTags()), IsErrorKind(ErrorKind::kCorrupted));
  EXPECT_OK(rig.residency->Wake({"state", "kv_cache"}));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
}

// A clean backup is checked as well: it is not copied out, but what it brings back is.
TEST(ResidencyFaultsTest, FlippedBitInACleanBackupIsCaught) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->Sleep({"weights"}, Soon()));
  ASSERT_OK(rig.residency->Wake({"weights"}));
  ASSERT_OK(rig.residency->Sleep({"weights"}, Soon()));
  rig.residency->PlantFaults({.flip_bit = true});
  EXPECT_THAT(rig.residency->Wake({"weights"}), IsErrorKind(ErrorKind::kCorrupted));
}

TEST(ResidencyFaultsTest, FlippedBitPassesUnseenWithoutVerification) {
  ResidencyRig rig({.host_only = false, .device = {}, .residency = {.verify = false}});
  rig.residency->PlantFaults({.flip_bit = true});
  ASSERT_OK(rig.residency->Sleep({"weights"}, Soon()));
  ASSERT_OK(rig.residency->Wake({"weights"}));
  EXPECT_NE(rig.Read("w0"), rig.Expected("w0", 1));
}

TEST(ResidencyFaultsTest, SwappedChunksAreCaught) {
  ResidencyRig rig;
  rig.residency->PlantFaults({.swap_chunks = true});
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  EXPECT_THAT(rig.residency->Wake(AllTags()), IsErrorKind(ErrorKind::kMisplaced));
  // The backups were not touched: without the fault the same wake works.
  rig.residency->PlantFaults({});
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.Read("w1"), rig.Expected("w1", 2));
}

// With a single kept chunk two of its leaves change places; where nothing differs, the fault says
// so.
TEST(ResidencyFaultsTest, SwappedLeavesAreCaught) {
  auto device = TestDevice();
  const std::uint64_t bytes = AlignUp(2 * kHashLeafBytes, device->info().granularity);
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("test"));
  ASSERT_OK_AND_ASSIGN(auto arena,
                       Arena::Create(*device, {.groups = {{"w", Role::kMutable, bytes, bytes}}}));
  ASSERT_OK(arena->Reserve({.name = "first", .tag = "w", .bytes = kHashLeafBytes}));
  ASSERT_OK_AND_ASSIGN(const SpanId second,
                       arena->Reserve({.name = "second", .tag = "w", .bytes = kHashLeafBytes}));
  ASSERT_OK(arena->Commit(second));
  ASSERT_OK_AND_ASSIGN(auto residency, Residency::Create(*arena));
  residency->PlantFaults({.swap_chunks = true});
  ASSERT_OK(residency->Sleep({"w"}, Soon()));
  EXPECT_THAT(residency->Wake({"w"}), IsErrorKind(ErrorKind::kInvalidArgument));  // all zero
  residency->PlantFaults({});
  ASSERT_OK(residency->Wake({"w"}));

  WriteBytes(*device, *stream, arena->range(second).base, Pattern(100, 1));
  residency->PlantFaults({.swap_chunks = true});
  ASSERT_OK(residency->Sleep({"w"}, Soon()));
  const auto woken = residency->Wake({"w"});
  EXPECT_THAT(woken, IsErrorKind(ErrorKind::kMisplaced));
  EXPECT_EQ(GetErrorInfo(woken.status())->object, "first");
}

TEST(ResidencyFaultsTest, SkippedRefillLeavesOtherContents) {
  ResidencyRig rig;
  rig.residency->PlantFaults({.skip_refill = true});
  ASSERT_OK(rig.residency->Sleep({"tables"}, Soon()));
  ASSERT_OK(rig.residency->Wake({"tables"}));
  EXPECT_EQ(rig.refills, 0);
  EXPECT_OK(rig.arena->CheckReady({"tables"}));  // it counts as defined: only the contents tell
  EXPECT_NE(rig.Read("table"), rig.Expected("table", ResidencyRig::kTableSeed));
}

// Pages unmapped under held work: the work runs into nothing and the device is lost, as on a GPU.
TEST(ResidencyFaultsTest, EarlyUnmapLosesTheDevice) {
  ResidencyRig rig({.host_only = true, .device = {}, .residency = {}});
  rig.arena->gate().RegisterStream(rig.stream.get());
  rig.residency->PlantFaults({.unmap_early = true});
  {
    Gate hold(*rig.device, *rig.stream);
    ASSERT_OK(hold.status());
    ASSERT_OK(
        rig.device->Fill(*rig.stream, rig.arena->range(*rig.arena->Find("state")).base, 1, 64));
    hold.WaitUntilReached();
    EXPECT_OK(rig.residency->Sleep({"state"}, Soon()));
  }
  EXPECT_THAT(rig.device->Synchronize(*rig.stream), IsErrorKind(ErrorKind::kDeviceLost));
  rig.arena->gate().UnregisterStream(rig.stream.get());
}

}  // namespace
}  // namespace holdfast
