// Verifies that no page goes while work that may touch it is admitted, enqueued or running.
#include <optional>
#include <thread>

#include "gtest/gtest.h"
#include "testing/gate.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

constexpr std::chrono::milliseconds kShort{40};

// Work held on a registered stream: sleep gives up at its deadline, nothing has changed, and it
// works later.
TEST(ResidencyDrainTest, SleepWaitsForRegisteredStreams) {
  ResidencyRig rig;
  rig.arena->gate().RegisterStream(rig.stream.get());
  const ResidencyRig::State before = rig.Look();
  const DeviceAddress state = rig.arena->range(*rig.arena->Find("state")).base;
  {
    Gate hold(*rig.device, *rig.stream);
    ASSERT_OK(hold.status());
    ASSERT_OK(rig.device->Fill(*rig.stream, state, 0x5a, 4096));
    hold.WaitUntilReached();
    EXPECT_THAT(rig.residency->Sleep(AllTags(), In(kShort)),
                IsErrorKind(ErrorKind::kDeadlineExceeded));
    EXPECT_FALSE(rig.residency->asleep("state"));
    EXPECT_OK(rig.arena->gate().Enter());
    EXPECT_EQ(rig.Look(), before);
  }
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  ASSERT_OK(rig.residency->Wake(AllTags()));
  // The held fill ran before its page went: it is part of what was kept.
  const Bytes bytes = rig.Read("state");
  EXPECT_TRUE(AllBytesAre(Bytes(bytes.begin(), bytes.begin() + 4096), 0x5a));
  rig.arena->gate().UnregisterStream(rig.stream.get());
}

// A replay that has entered but not launched yet holds sleep up as well; a sleeping tag refuses the
// next.
TEST(ResidencyDrainTest, SleepWaitsForEntrants) {
  ResidencyRig rig;
  auto entered = rig.arena->gate().Enter();
  ASSERT_OK(entered);
  std::optional<AdmissionGate::Pass> inside(*std::move(entered));
  EXPECT_THAT(rig.residency->Sleep({"state"}, In(kShort)),
              IsErrorKind(ErrorKind::kDeadlineExceeded));
  EXPECT_FALSE(rig.arena->gate().closed());
  inside.reset();
  EXPECT_OK(rig.residency->Sleep({"state"}, Soon()));
  EXPECT_FALSE(rig.arena->gate().closed());
}

// State readers answer while a transition is stuck behind running work.
TEST(ResidencyDrainTest, ReadersDoNotWaitForTransitions) {
  ResidencyRig rig;
  rig.arena->gate().RegisterStream(rig.stream.get());
  std::optional<Gate> hold;
  hold.emplace(*rig.device, *rig.stream);
  hold->WaitUntilReached();
  std::thread sleeper([&] { EXPECT_OK(rig.residency->Sleep({"state"}, Soon())); });
  while (!rig.arena->gate().closed()) std::this_thread::yield();
  // Would hang, not fail, if any of these waited: the gate below opens only afterwards.
  EXPECT_FALSE(rig.residency->asleep("state"));
  EXPECT_OK(rig.arena->CheckReady({"state"}));
  EXPECT_FALSE(rig.arena->bytes_by_tag().empty());
  EXPECT_GT(rig.residency->backing_bytes(), 0u);
  EXPECT_THAT(rig.arena->gate().Enter(), IsErrorKind(ErrorKind::kBusy));
  hold.reset();
  sleeper.join();
  EXPECT_TRUE(rig.residency->asleep("state"));
  rig.arena->gate().UnregisterStream(rig.stream.get());
}

}  // namespace
}  // namespace holdfast
