// Verifies that the gate lets replays in while open, and that closing it waits for entrants and
// streams.
#include "allocator/admission_gate.h"

#include <optional>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "testing/gate.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;

AdmissionGate::Deadline In(milliseconds time) { return std::chrono::steady_clock::now() + time; }
constexpr milliseconds kLong{30000};
constexpr milliseconds kShort{30};

TEST(AdmissionGateTest, OpenGateAdmitsAnyNumber) {
  AdmissionGate gate;
  auto a = gate.Enter();
  auto b = gate.Enter();
  EXPECT_OK(a);
  EXPECT_OK(b);
  EXPECT_FALSE(gate.closed());
}

TEST(AdmissionGateTest, ClosedGateRefusesAtOnceUntilReopened) {
  auto device = TestDevice();
  AdmissionGate gate;
  ASSERT_OK(gate.CloseAndDrain(*device, In(kLong)));
  EXPECT_TRUE(gate.closed());
  EXPECT_THAT(gate.Enter(), IsErrorKind(ErrorKind::kBusy));
  EXPECT_THAT(gate.CloseWithoutFence(In(kLong)), IsErrorKind(ErrorKind::kBusy));
  EXPECT_TRUE(gate.closed());  // the second closer did not open it for the first
  gate.Reopen();
  EXPECT_OK(gate.Enter());
  // Refused entries left no trace: it closes at once.
  EXPECT_OK(gate.CloseAndDrain(*device, In(milliseconds(0))));
}

// A close waits for whoever is inside, and goes on when they leave.
TEST(AdmissionGateTest, CloseWaitsForEntrants) {
  auto device = TestDevice();
  AdmissionGate gate;
  auto entered = gate.Enter();
  ASSERT_OK(entered);
  std::optional<AdmissionGate::Pass> inside(*std::move(entered));
  EXPECT_THAT(gate.CloseAndDrain(*device, In(kShort)), IsErrorKind(ErrorKind::kDeadlineExceeded));
  EXPECT_FALSE(gate.closed());  // a missed deadline reopens it
  std::thread leaver([&] {
    while (!gate.closed()) std::this_thread::yield();
    inside.reset();
  });
  EXPECT_OK(gate.CloseAndDrain(*device, In(kLong)));
  leaver.join();
}

// A moved pass leaves once, when its last owner goes.
TEST(AdmissionGateTest, MovedPassLeavesOnce) {
  AdmissionGate gate;
  auto entered = gate.Enter();
  ASSERT_OK(entered);
  {
    AdmissionGate::Pass first(*std::move(entered));
    AdmissionGate::Pass second(std::move(first));
    EXPECT_THAT(gate.CloseWithoutFence(In(milliseconds(0))),
                IsErrorKind(ErrorKind::kDeadlineExceeded));
  }
  EXPECT_OK(gate.CloseWithoutFence(In(milliseconds(0))));
}

// Work on a registered stream holds the drain up; a stream that was taken off does not.
TEST(AdmissionGateTest, DrainWaitsForRegisteredStreams) {
  auto device = TestDevice();
  ASSERT_OK_AND_ASSIGN(auto lane, device->CreateStream("lane"));
  AdmissionGate gate;
  gate.RegisterStream(lane.get());
  {
    Gate hold(*device, *lane);
    ASSERT_OK(hold.status());
    hold.WaitUntilReached();
    EXPECT_THAT(gate.CloseAndDrain(*device, In(kShort)), IsErrorKind(ErrorKind::kDeadlineExceeded));
    EXPECT_FALSE(gate.closed());
    // The negative control: without the fence the running work is not seen.
    EXPECT_OK(gate.CloseWithoutFence(In(kShort)));
    gate.Reopen();
    gate.UnregisterStream(lane.get());
    EXPECT_OK(gate.CloseAndDrain(*device, In(kShort)));
    gate.Reopen();
    gate.RegisterStream(lane.get());
  }
  EXPECT_OK(gate.CloseAndDrain(*device, In(kLong)));
  gate.UnregisterStream(lane.get());
}

// Nobody is inside while the gate is held closed, however many try.
TEST(AdmissionGateTest, NobodyIsInsideAClosedGate) {
  AdmissionGate gate;
  std::atomic<int> inside{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> replays;
  for (int i = 0; i < 3; ++i) {
    replays.emplace_back([&] {
      while (!stop.load()) {
        auto pass = gate.Enter();
        if (!pass.ok()) continue;
        inside.fetch_add(1);
        inside.fetch_sub(1);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK(gate.CloseWithoutFence(In(kLong)));
    EXPECT_EQ(inside.load(), 0);
    gate.Reopen();
  }
  stop.store(true);
  for (std::thread& replay : replays) replay.join();
}

}  // namespace
}  // namespace holdfast
