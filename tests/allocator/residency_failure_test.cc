// Verifies that a transition that fails at any device call leaves the state before it and can be
// retried.
#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

// Ends the rig and checks that every create, map and allocation found its counterpart.
void ExpectBalanced(ResidencyRig& rig) {
  rig.End();
  EXPECT_TRUE(rig.device->calls().Balanced());
  EXPECT_EQ(rig.device->Memory()->own_bytes, 0u);
}

// Each dropped span as it was, or as its declaration says after its pages had to be made anew.
void ExpectDroppedHeldOrDeclared(ResidencyRig& rig) {
  const Bytes zero = rig.Read("kv.zero"), poison = rig.Read("kv.poison");
  EXPECT_TRUE(zero == rig.Expected("kv.zero", 11) || AllBytesAre(zero, 0));
  EXPECT_TRUE(poison == rig.Expected("kv.poison", 12) || AllBytesAre(poison, 0xFF));
  EXPECT_EQ(rig.Read("table"), rig.Expected("table", ResidencyRig::kTableSeed));
}

void ExpectKeptBytes(ResidencyRig& rig) {
  EXPECT_EQ(rig.Read("w0"), rig.Expected("w0", 1));
  EXPECT_EQ(rig.Read("w1"), rig.Expected("w1", 2));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
}

TEST(ResidencyFailureTest, SleepFailingAtAnyCallLeavesThePreviousState) {
  std::uint64_t k = 1;
  int unheard = 0;
  for (;; ++k) {
    SCOPED_TRACE("call " + std::to_string(k));
    ResidencyRig rig;
    const ResidencyRig::State before = rig.Look();
    rig.device->calls().FailAt(k);
    const auto slept = rig.residency->Sleep(AllTags(), Soon());
    if (!rig.device->calls().Disarm()) {
      EXPECT_OK(slept);
      break;
    }
    if (slept.ok()) {
      // The one call whose failure nobody hears of: a pinned buffer's end, which tries again by
      // itself.
      ++unheard;
      ExpectBalanced(rig);
      continue;
    }
    EXPECT_THAT(slept, IsErrorKind(ErrorKind::kDriver));
    EXPECT_EQ(rig.Look(), before);
    ExpectDroppedHeldOrDeclared(rig);
    EXPECT_OK(rig.arena->CheckReady(AllTags()));
    // Kept spans may be written at once, and the retry keeps what was written.
    rig.Write("state", 3);
    ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
    EXPECT_EQ(rig.device->Memory()->own_bytes, 0u);
    ASSERT_OK(rig.residency->Wake(AllTags()));
    EXPECT_EQ(rig.Look(), before);
    ExpectKeptBytes(rig);
    ExpectBalanced(rig);
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_LE(unheard, 1);
  EXPECT_GE(k, 25u);  // 7 chunks unmapped and released, 3 hashed, copied and backed
}

// Nothing at all is lost unless a dropped chunk had gone already: dropped chunks are released last.
TEST(ResidencyFailureTest, SleepFailingBeforeDroppedPagesGoLosesNothing) {
  const std::uint64_t releases_of_kept = 3;
  for (std::uint64_t k = 1; k <= releases_of_kept + 1; ++k) {
    SCOPED_TRACE("release " + std::to_string(k));
    ResidencyRig rig;
    const ResidencyRig::State before = rig.Look();
    rig.device->calls().FailAt(k, {Call::kReleaseChunk});
    EXPECT_THAT(rig.residency->Sleep(AllTags(), Soon()), IsErrorKind(ErrorKind::kDriver));
    EXPECT_TRUE(rig.device->calls().Disarm());
    EXPECT_EQ(rig.Look(), before);
    ExpectKeptBytes(rig);
    EXPECT_EQ(rig.Read("kv.zero"), rig.Expected("kv.zero", 11));
    EXPECT_EQ(rig.Read("workspace"), rig.Expected("workspace", 13));
    EXPECT_EQ(rig.refills, 0);
  }
}

TEST(ResidencyFailureTest, WakeFailingAtAnyCallStaysAsleepAndRetryable) {
  std::uint64_t k = 1;
  int unheard = 0;
  for (;; ++k) {
    SCOPED_TRACE("call " + std::to_string(k));
    ResidencyRig rig;
    const ResidencyRig::State awake = rig.Look();
    ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
    const ResidencyRig::State before = rig.Look();
    const std::uint64_t epoch = rig.arena->epoch();
    rig.device->calls().FailAt(k);
    const auto woken = rig.residency->Wake(AllTags());
    const bool fired = rig.device->calls().Disarm();
    if (!fired) {
      EXPECT_OK(woken);
      break;
    }
    if (woken.ok()) {
      ++unheard;  // the end of a pinned buffer, as above
    } else {
      EXPECT_THAT(woken, IsErrorKind(ErrorKind::kDriver));
      EXPECT_EQ(rig.Look(), before);
      EXPECT_EQ(rig.arena->epoch(), epoch);
      EXPECT_THAT(rig.arena->CheckReady({"weights"}), IsErrorKind(ErrorKind::kAsleep));
      ASSERT_OK(rig.residency->Wake(AllTags()));
    }
    EXPECT_EQ(rig.Look(), awake);
    ExpectKeptBytes(rig);
    EXPECT_TRUE(AllBytesAre(rig.Read("kv.zero"), 0));
    EXPECT_EQ(rig.Read("table"), rig.Expected("table", ResidencyRig::kTableSeed));
    ExpectBalanced(rig);
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_LE(unheard, 1);
  EXPECT_GE(k, 30u);  // 7 chunks made, mapped, accessible; 3 copied and hashed; fills, refill
}

// Undoing a wake fails too: the piece that cannot be unmapped stays recorded, and the next wake
// takes it.
TEST(ResidencyFailureTest, WakeWhoseUndoFailsLosesNothing) {
  for (const Call second : {Call::kUnmap, Call::kReleaseChunk}) {
    SCOPED_TRACE(CallName(second));
    ResidencyRig rig;
    const ResidencyRig::State awake = rig.Look();
    ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
    rig.refill_override = [&] {
      rig.device->calls().FailAt(2, {second});
      return MakeError({.kind = ErrorKind::kInternal, .object = "hook"}, "planted");
    };
    EXPECT_THAT(rig.residency->Wake(AllTags()), IsErrorKind(ErrorKind::kInternal));
    EXPECT_TRUE(rig.device->calls().Disarm());
    for (const std::string& tag : AllTags()) EXPECT_TRUE(rig.residency->asleep(tag));
    EXPECT_EQ(rig.device->Memory()->own_bytes,
              rig.device->info().granularity);  // the piece, not hidden
    rig.refill_override = nullptr;
    ASSERT_OK(rig.residency->Wake(AllTags()));
    EXPECT_EQ(rig.Look(), awake);
    ExpectKeptBytes(rig);
    ExpectBalanced(rig);
  }
}

// The same piece is given back by another sleep, or at the arena's end.
TEST(ResidencyFailureTest, LeftoverPiecesAreGivenBackBySleepOrTheEnd) {
  for (const bool sleep_again : {true, false}) {
    ResidencyRig rig;
    ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
    rig.refill_override = [&] {
      rig.device->calls().FailAt(1, {Call::kUnmap});
      return MakeError({.kind = ErrorKind::kInternal, .object = "hook"}, "planted");
    };
    EXPECT_FALSE(rig.residency->Wake(AllTags()).ok());
    EXPECT_TRUE(rig.device->calls().Disarm());
    EXPECT_GT(rig.device->Memory()->own_bytes, 0u);
    if (sleep_again) {
      ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
      EXPECT_EQ(rig.device->Memory()->own_bytes, 0u);
    }
    ExpectBalanced(rig);
  }
}

// Sleep can neither finish nor be undone: it ends asleep, with every kept byte in its backup.
TEST(ResidencyFailureTest, SleepWhoseUndoFailsEndsAsleepWithBackups) {
  auto device = TestDevice();
  const std::uint64_t g = device->info().granularity;
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("test"));
  ASSERT_OK_AND_ASSIGN(auto arena,
                       Arena::Create(*device, {.groups = {{"t", Role::kMutable, g, g},
                                                          {"t", Role::kMutable, g, g, true},
                                                          {"t", Role::kScratch, g, g}}}));
  bool refill_works = false;
  ASSERT_OK_AND_ASSIGN(const SpanId kept,
                       arena->Reserve({.name = "kept", .tag = "t", .bytes = 5000}));
  ASSERT_OK(arena->Reserve({.name = "filled",
                            .tag = "t",
                            .bytes = 100,
                            .refill = [&](Device&, Stream&, AddressRange) -> absl::Status {
                              if (refill_works) return absl::OkStatus();
                              return MakeError({.kind = ErrorKind::kNotFound}, "no source");
                            }}));
  ASSERT_OK(arena->Reserve({.name = "scratch", .tag = "t", .role = Role::kScratch, .bytes = 100}));
  ASSERT_OK(arena->CommitTag("t"));
  WriteBytes(*device, *stream, arena->range(kept).base, Pattern(5000, 8));
  ASSERT_OK_AND_ASSIGN(auto residency, Residency::Create(*arena));

  // Kept and refilled chunks have gone when the scratch chunk's release fails; the refill then
  // fails too.
  const std::uint64_t epoch = arena->epoch();
  device->calls().FailAt(3, {Call::kReleaseChunk});
  const auto slept = residency->Sleep({"t"}, Soon());
  EXPECT_TRUE(device->calls().Disarm());
  EXPECT_THAT(slept, IsErrorKind(ErrorKind::kDriver));
  EXPECT_THAT(std::string(slept.status().message()), testing::HasSubstr("nor be undone"));
  EXPECT_TRUE(residency->asleep("t"));
  EXPECT_FALSE(arena->gate().closed());
  EXPECT_GT(arena->epoch(), epoch);
  EXPECT_EQ(device->Memory()->own_bytes, 0u);

  EXPECT_THAT(residency->Wake({"t"}), IsErrorKind(ErrorKind::kNotFound));
  refill_works = true;
  ASSERT_OK(residency->Wake({"t"}));
  EXPECT_EQ(device->Memory()->own_bytes, 3 * g);
  EXPECT_EQ(ReadBytes(*device, *stream, arena->range(kept)), Pattern(5000, 8));
  residency.reset();
  arena.reset();
  EXPECT_TRUE(device->calls().Balanced());
}

}  // namespace
}  // namespace holdfast
