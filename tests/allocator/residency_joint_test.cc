// Verifies that one transition over several arenas changes all of them or none.
#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

// One arena with something kept and something dropped.
struct Half {
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Residency> residency;
  SpanId kept;
};

Half MakeHalf(Device& device, std::uint64_t seed, std::shared_ptr<BackingPool> pool = nullptr) {
  Half half;
  const std::uint64_t g = device.info().granularity;
  half.stream = *device.CreateStream("test");
  half.arena = *Arena::Create(
      device, {.groups = {{"w", Role::kImmutable, 2 * g, g}, {"kv", Role::kCache, g, g}}});
  half.kept =
      *half.arena->Reserve({.name = "w", .tag = "w", .role = Role::kImmutable, .bytes = g + g / 2});
  EXPECT_OK(half.arena->Reserve({.name = "kv", .tag = "kv", .role = Role::kCache, .bytes = g}));
  for (const std::string tag : {"w", "kv"}) EXPECT_OK(half.arena->CommitTag(tag));
  const AddressRange range = half.arena->range(half.kept);
  WriteBytes(device, *half.stream, range.base, Pattern(range.bytes, seed));
  half.residency = *Residency::Create(*half.arena, {.pool = std::move(pool)});
  return half;
}

bool Holds(Device& device, Half& half, std::uint64_t seed) {
  const AddressRange range = half.arena->range(half.kept);
  return ReadBytes(device, *half.stream, range) == Pattern(range.bytes, seed);
}

std::vector<ArenaTags> Both(Half& a, Half& b) {
  return {{a.residency.get(), {"w", "kv"}}, {b.residency.get(), {"w", "kv"}}};
}

// Two arenas, on one device or on two.
class Pair {
 public:
  explicit Pair(bool two_devices)
      : first(TestHostDevice()),
        second(two_devices ? TestHostDevice() : nullptr),
        a(MakeHalf(*first, 1)),
        b(MakeHalf(*(second ? second : first), 2)) {}
  Device& device_b() { return second ? *second : *first; }
  std::uint64_t own_bytes() {
    return first->Memory()->own_bytes + (second ? second->Memory()->own_bytes : 0);
  }
  bool asleep(const Half& half) {
    return half.residency->asleep("w") && half.residency->asleep("kv");
  }
  bool awake(const Half& half) {
    return !half.residency->asleep("w") && !half.residency->asleep("kv");
  }
  void ExpectContents() {
    EXPECT_TRUE(Holds(*first, a, 1));
    EXPECT_TRUE(Holds(device_b(), b, 2));
  }

  std::unique_ptr<Device> first, second;
  Half a, b;
};

TEST(ResidencyJointTest, BothSleepAndBothWake) {
  for (const bool two_devices : {false, true}) {
    Pair pair(two_devices);
    const std::uint64_t own = pair.own_bytes();
    ASSERT_OK_AND_ASSIGN(const auto slept, SleepTogether(Both(pair.a, pair.b), Soon()));
    ASSERT_EQ(slept.size(), 2u);
    EXPECT_EQ(slept[0].freed_bytes + slept[1].freed_bytes, own);
    EXPECT_EQ(pair.own_bytes(), 0u);
    EXPECT_TRUE(pair.asleep(pair.a) && pair.asleep(pair.b));
    ASSERT_OK_AND_ASSIGN(const auto woken, WakeTogether(Both(pair.a, pair.b)));
    EXPECT_EQ(woken[1].freed_bytes, slept[1].freed_bytes);
    EXPECT_EQ(pair.own_bytes(), own);
    pair.ExpectContents();
  }
}

// Fails call k of either device, in the sleep or in the wake.
void FailEachCall(bool two_devices, bool on_second, bool waking) {
  for (std::uint64_t k = 1;; ++k) {
    SCOPED_TRACE("call " + std::to_string(k));
    Pair pair(two_devices);
    const std::uint64_t own = pair.own_bytes();
    if (waking) {
      ASSERT_OK(SleepTogether(Both(pair.a, pair.b), Soon()));
    }
    CallTable& calls = (on_second ? pair.device_b() : *pair.first).calls();
    calls.FailAt(k);
    const absl::Status status = waking ? WakeTogether(Both(pair.a, pair.b)).status()
                                       : SleepTogether(Both(pair.a, pair.b), Soon()).status();
    const bool fired = calls.Disarm();
    const bool want_asleep = waking != status.ok();
    EXPECT_TRUE(want_asleep ? pair.asleep(pair.a) && pair.asleep(pair.b)
                            : pair.awake(pair.a) && pair.awake(pair.b));
    EXPECT_EQ(pair.own_bytes(), want_asleep ? 0 : own);
    EXPECT_FALSE(pair.a.arena->gate().closed() || pair.b.arena->gate().closed());
    if (want_asleep) {
      ASSERT_OK(WakeTogether(Both(pair.a, pair.b)));
    }
    ASSERT_OK(SleepTogether(Both(pair.a, pair.b), Soon()));
    ASSERT_OK(WakeTogether(Both(pair.a, pair.b)));
    pair.ExpectContents();
    if (!fired) {
      EXPECT_OK(status);
      EXPECT_GT(k, 10u);
      break;
    }
    if (testing::Test::HasFailure()) break;
  }
}

TEST(ResidencyJointTest, SleepOnOneDeviceIsAllOrNone) { FailEachCall(false, false, false); }
TEST(ResidencyJointTest, WakeOnOneDeviceIsAllOrNone) { FailEachCall(false, false, true); }
TEST(ResidencyJointTest, SleepOnTwoDevicesIsAllOrNone) {
  for (const bool on_second : {false, true}) FailEachCall(true, on_second, false);
}
TEST(ResidencyJointTest, WakeOnTwoDevicesIsAllOrNone) {
  for (const bool on_second : {false, true}) FailEachCall(true, on_second, true);
}

// Work on the second arena alone keeps both awake, with both gates open.
TEST(ResidencyJointTest, ADeadlineMissedByOneLeavesBothAwake) {
  Pair pair(/*two_devices=*/true);
  const auto inside = pair.b.arena->gate().Enter();
  ASSERT_OK(inside);
  EXPECT_THAT(SleepTogether(Both(pair.a, pair.b), In(std::chrono::milliseconds(20))),
              IsErrorKind(ErrorKind::kDeadlineExceeded));
  EXPECT_TRUE(pair.awake(pair.a) && pair.awake(pair.b));
  EXPECT_FALSE(pair.a.arena->gate().closed() || pair.b.arena->gate().closed());
}

// The cap of a shared pool is judged for both together, before anything moves.
TEST(ResidencyJointTest, ASharedCapIsJudgedForBoth) {
  auto device = TestDevice();
  const std::uint64_t g = device->info().granularity;
  auto pool = BackingPool::Create(*device, {.cap_bytes = 3 * g - 1});
  Half a = MakeHalf(*device, 1, pool), b = MakeHalf(*device, 2, pool);
  const std::uint64_t copies = device->calls().succeeded(Call::kCopy);
  const auto refused = SleepTogether(Both(a, b), Soon());
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfHostMemory));
  EXPECT_EQ(GetErrorInfo(refused.status())->need, 3 * g);
  EXPECT_EQ(device->calls().succeeded(Call::kCopy), copies);
  EXPECT_EQ(pool->held_bytes(), 0u);
  EXPECT_OK(a.residency->Sleep({"w"}, Soon()));
  EXPECT_OK(a.residency->Wake({"w"}));
}

TEST(ResidencyJointTest, BadRequestsAreRefused) {
  Pair pair(/*two_devices=*/false);
  EXPECT_THAT(SleepTogether({}, Soon()), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(SleepTogether(Both(pair.a, pair.a), Soon()),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(WakeTogether({{nullptr, {"w"}}}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(WakeTogether(Both(pair.a, pair.b), {.publish_each_tag = true}),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(
      SleepTogether({{pair.a.residency.get(), {"w"}}, {pair.b.residency.get(), {"x"}}}, Soon()),
      IsErrorKind(ErrorKind::kNotFound));
  EXPECT_TRUE(pair.awake(pair.a));
}

}  // namespace
}  // namespace holdfast
