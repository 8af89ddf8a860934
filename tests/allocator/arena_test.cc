// Verifies where windows and spans lie, what names them, and what a locked arena refuses.
#include "allocator/arena.h"

#include "allocator/arena_layout.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kHuge = std::uint64_t{1} << 50;

class ArenaTest : public testing::Test {
 protected:
  std::unique_ptr<Arena> Make(std::vector<GroupSpec> groups,
                              std::vector<DeviceAddress> candidates = {}) {
    auto arena = Arena::Create(
        *device_,
        {.name = "test", .groups = std::move(groups), .candidate_bases = std::move(candidates)});
    EXPECT_OK(arena);
    return arena.ok() ? *std::move(arena) : nullptr;
  }
  std::unique_ptr<Arena> MakeOne() {
    return Make({{"weights", Role::kImmutable, 4 * g_, g_}, {"state", Role::kMutable, 2 * g_, g_}});
  }

  std::unique_ptr<Device> device_ = TestDevice();
  const std::uint64_t g_ = device_->info().granularity;
};

// The window starts at the first candidate, covers all groups, and has no page yet.
TEST_F(ArenaTest, WindowTakesTheFirstFreeCandidate) {
  auto arena = MakeOne();
  const std::vector<DeviceAddress> candidates = DefaultCandidateBases();
  ASSERT_GE(arena->base_candidate(), 0);
  EXPECT_EQ(arena->window().base, candidates[static_cast<std::size_t>(arena->base_candidate())]);
  EXPECT_EQ(arena->window().bytes, 4 * g_ + g_ + 2 * g_);
  EXPECT_EQ(device_->Memory()->own_bytes, 0u);
  EXPECT_FALSE(device_->Query(arena->window().base).mapped);
}

// A candidate that is taken is passed over; the one that was used is recorded; nothing stays
// behind.
TEST_F(ArenaTest, TakenCandidateIsPassedOverAndRecorded) {
  const std::vector<DeviceAddress> candidates = DefaultCandidateBases();
  int expected = -1;
  {
    auto probe = MakeOne();
    expected = probe->base_candidate();
  }
  ASSERT_GE(expected, 0);
  const auto first = candidates[static_cast<std::size_t>(expected)];
  ASSERT_OK_AND_ASSIGN(const AddressRange blocker, device_->ReserveAddress(g_, first));
  ASSERT_EQ(blocker.base, first);
  {
    auto arena = MakeOne();
    EXPECT_NE(arena->base_candidate(), expected);
    EXPECT_NE(arena->window().base, first);
    if (arena->base_candidate() >= 0) {
      EXPECT_EQ(arena->window().base,
                candidates[static_cast<std::size_t>(arena->base_candidate())]);
    }
  }
  ASSERT_OK(device_->FreeAddress(blocker));
  EXPECT_TRUE(device_->calls().Balanced());
}

// Without a free candidate the device chooses, and the arena says so.
TEST_F(ArenaTest, DeviceChoosesWhenEveryCandidateIsTaken) {
  ASSERT_OK_AND_ASSIGN(const AddressRange blocker, device_->ReserveAddress(4 * g_, {}));
  {
    auto arena = Make({{"state", Role::kMutable, g_, g_}}, {blocker.base});
    EXPECT_EQ(arena->base_candidate(), -1);
    EXPECT_NE(arena->window().base, blocker.base);
  }
  ASSERT_OK(device_->FreeAddress(blocker));
  EXPECT_TRUE(device_->calls().Balanced());
}

// A refused reservation is not the end: the next candidate is tried.
TEST_F(ArenaTest, RefusedCandidateIsPassedOver) {
  device_->calls().FailAt(1, {Call::kReserveAddress});
  auto arena = MakeOne();
  EXPECT_TRUE(device_->calls().Disarm());
  EXPECT_NE(arena->base_candidate(), 0);
}

// A window that cannot be had is one error that names its size; nothing is left reserved. Field
// case 38.
TEST_F(ArenaTest, ImpossibleWindowNamesItsSize) {
  const auto arena =
      Arena::Create(*device_, {.name = "big", .groups = {{"kv", Role::kCache, kHuge, g_}}});
  EXPECT_THAT(arena, IsErrorKind(ErrorKind::kAddressTaken));
  const auto info = GetErrorInfo(arena.status());
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->need, kHuge);
  EXPECT_EQ(info->object, "big");
  EXPECT_TRUE(device_->calls().Balanced());
}

TEST_F(ArenaTest, BadGroupsAreRefused) {
  const auto kind = [&](std::vector<GroupSpec> groups) {
    return Arena::Create(*device_, {.groups = std::move(groups)});
  };
  const GroupSpec good{"state", Role::kMutable, g_, g_};
  EXPECT_THAT(kind({}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(kind({good, good}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(kind({{"", Role::kMutable, g_, g_}}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(kind({{"x", Role::kMutable, 0, g_}}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(kind({{"x", Role::kMutable, g_, 0}}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(kind({{"x", Role::kMutable, UINT64_MAX, g_}}),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(
      kind({{"x", Role::kMutable, UINT64_MAX - 4 * g_, g_}, {"y", Role::kMutable, 8 * g_, g_}}),
      IsErrorKind(ErrorKind::kInvalidArgument));
}

// Spans get aligned addresses in their group, in order, at their logical size.
TEST_F(ArenaTest, SpansAreAlignedAndUnrounded) {
  auto arena = MakeOne();
  ASSERT_OK_AND_ASSIGN(const SpanId a, arena->Reserve({.name = "a", .tag = "state", .bytes = 3}));
  ASSERT_OK_AND_ASSIGN(
      const SpanId b,
      arena->Reserve({.name = "b", .tag = "state", .bytes = 300, .alignment = 4096}));
  ASSERT_OK_AND_ASSIGN(
      const SpanId c,
      arena->Reserve({.name = "c", .tag = "weights", .role = Role::kImmutable, .bytes = 5}));
  EXPECT_EQ(arena->range(a).bytes, 3u);
  EXPECT_EQ(arena->range(a).base.value % 256, 0u);
  EXPECT_EQ(arena->range(b).base - arena->range(a).base, 4096u);
  // weights come first, and a granule of nothing lies between the groups.
  EXPECT_EQ(arena->range(c).base, arena->window().base);
  EXPECT_EQ(arena->range(a).base - arena->window().base, 5 * g_);
  EXPECT_EQ(arena->span(b).spec.name, "b");
  EXPECT_EQ(arena->Find("b"), b);
  EXPECT_EQ(arena->Find("d"), std::nullopt);
}

TEST_F(ArenaTest, ReserveRefusesWhatDoesNotFit) {
  auto arena = MakeOne();
  const SpanSpec good{.name = "a", .tag = "state", .bytes = g_};
  ASSERT_OK(arena->Reserve(good));
  const auto reserve = [&](SpanSpec spec) { return arena->Reserve(std::move(spec)); };
  EXPECT_THAT(reserve(good), IsErrorKind(ErrorKind::kAlreadyExists));
  EXPECT_THAT(reserve({.name = "b", .tag = "none", .bytes = 1}), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_THAT(reserve({.name = "b", .tag = "state", .role = Role::kCache, .bytes = 1}),
              IsErrorKind(ErrorKind::kNotFound));
  EXPECT_THAT(reserve({.name = "", .tag = "state", .bytes = 1}),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(reserve({.name = "b", .tag = "state", .bytes = 0}),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(reserve({.name = "b", .tag = "state", .bytes = 1, .alignment = 3}),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(reserve({.name = "b", .tag = "state", .bytes = 1, .alignment = 2 * g_}),
              IsErrorKind(ErrorKind::kInvalidArgument));
  const auto too_big = reserve({.name = "b", .tag = "state", .bytes = g_ + 1});
  EXPECT_THAT(too_big, IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_EQ(GetErrorInfo(too_big.status())->need, g_ + 1);
  EXPECT_EQ(GetErrorInfo(too_big.status())->have, g_);
  // Nothing of these took room.
  EXPECT_OK(reserve({.name = "b", .tag = "state", .bytes = g_}));
}

// A span with a refill hook belongs to the refilled group of its tag, and only there.
TEST_F(ArenaTest, RefilledSpansHaveTheirOwnGroup) {
  auto arena = Make({{"t", Role::kMutable, g_, g_}, {"t", Role::kMutable, g_, g_, true}});
  const Refill refill = [](Device&, Stream&, AddressRange) { return absl::OkStatus(); };
  ASSERT_OK_AND_ASSIGN(const SpanId kept, arena->Reserve({.name = "kept", .tag = "t", .bytes = 1}));
  ASSERT_OK_AND_ASSIGN(
      const SpanId filled,
      arena->Reserve({.name = "filled", .tag = "t", .bytes = 1, .refill = refill}));
  EXPECT_EQ(arena->range(filled).base - arena->range(kept).base, 2 * g_);
  auto plain = MakeOne();
  EXPECT_THAT(plain->Reserve({.name = "x", .tag = "state", .bytes = 1, .refill = refill}),
              IsErrorKind(ErrorKind::kNotFound));
}

TEST_F(ArenaTest, LockedArenaTakesNoSpanButCommits) {
  auto arena = MakeOne();
  ASSERT_OK_AND_ASSIGN(const SpanId a,
                       arena->Reserve({.name = "a", .tag = "state", .bytes = 2 * g_}));
  ASSERT_OK(arena->Commit(a, 1));
  arena->Lock();
  arena->Lock();
  EXPECT_TRUE(arena->locked());
  EXPECT_THAT(arena->Reserve({.name = "b", .tag = "weights", .role = Role::kImmutable, .bytes = 1}),
              IsErrorKind(ErrorKind::kLocked));
  const AddressRange before = arena->range(a);
  EXPECT_OK(arena->Commit(a));
  EXPECT_EQ(arena->range(a), before);
}

// Every address finds its span; one past the end still counts, unless the next span begins there.
TEST_F(ArenaTest, LocateNamesSpanAndOffset) {
  auto arena = MakeOne();
  ASSERT_OK_AND_ASSIGN(const SpanId a, arena->Reserve({.name = "a", .tag = "state", .bytes = 256}));
  ASSERT_OK_AND_ASSIGN(const SpanId b, arena->Reserve({.name = "b", .tag = "state", .bytes = 100}));
  const DeviceAddress base = arena->range(a).base;
  ASSERT_EQ(arena->range(b).base, base + 256);
  const auto at = [&](std::uint64_t offset) { return arena->Locate(base + offset); };
  ASSERT_TRUE(at(0) && at(255) && at(256) && at(356));
  EXPECT_EQ(at(0)->span, a);
  EXPECT_EQ(at(255)->span, a);
  EXPECT_EQ(at(255)->offset, 255u);
  EXPECT_EQ(at(256)->span, b);
  EXPECT_EQ(at(256)->offset, 0u);
  EXPECT_EQ(at(356)->span, b);
  EXPECT_EQ(at(356)->offset, 100u);
  EXPECT_FALSE(at(357));
  EXPECT_FALSE(arena->Locate({base.value - 1}));
  EXPECT_FALSE(arena->Locate({1}));
}

TEST_F(ArenaTest, HostSpansAreOwnedNamedAndFound) {
  {
    auto arena = MakeOne();
    ASSERT_OK_AND_ASSIGN(const HostSpan* tokens, arena->AddHostSpan("tokens", 100));
    EXPECT_EQ(tokens->buffer.size(), 100u);
    EXPECT_THAT(arena->AddHostSpan("tokens", 1), IsErrorKind(ErrorKind::kAlreadyExists));
    EXPECT_THAT(arena->AddHostSpan("", 1), IsErrorKind(ErrorKind::kInvalidArgument));
    EXPECT_THAT(arena->AddHostSpan("empty", 0), IsErrorKind(ErrorKind::kInvalidArgument));
    const auto base = reinterpret_cast<std::uint64_t>(tokens->buffer.data());
    EXPECT_EQ(arena->LocateHost(base), tokens);
    EXPECT_EQ(arena->LocateHost(base + 100), tokens);
    EXPECT_EQ(arena->LocateHost(base + 101), nullptr);
    EXPECT_EQ(arena->LocateHost(base - 1), nullptr);
  }
  EXPECT_TRUE(device_->calls().Balanced());
}

TEST_F(ArenaTest, ViewShiftsWhatItResolves) {
  auto arena = MakeOne();
  ASSERT_OK_AND_ASSIGN(const SpanId a, arena->Reserve({.name = "a", .tag = "state", .bytes = 256}));
  EXPECT_EQ(ArenaView(*arena).Resolve(a), arena->range(a).base);
  EXPECT_EQ(ArenaView(*arena, 0x1000).Resolve(a), arena->range(a).base + 0x1000);
}

TEST_F(ArenaTest, ReadyNamesUnknownTagsAndUndefinedSpans) {
  auto arena = MakeOne();
  ASSERT_OK_AND_ASSIGN(const SpanId a, arena->Reserve({.name = "a", .tag = "state", .bytes = 256}));
  EXPECT_OK(arena->CheckReady({"state", "weights"}));
  EXPECT_THAT(arena->CheckReady({"other"}), IsErrorKind(ErrorKind::kNotFound));
  arena->SetUndefined(a, true);
  arena->SetUndefined(a, true);
  const absl::Status undefined = arena->CheckReady({"weights", "state"});
  EXPECT_THAT(undefined, IsErrorKind(ErrorKind::kUndefinedContents));
  EXPECT_EQ(GetErrorInfo(undefined)->object, "a");
  arena->SetUndefined(a, false);
  EXPECT_OK(arena->CheckReady({"state"}));
}

}  // namespace
}  // namespace holdfast
