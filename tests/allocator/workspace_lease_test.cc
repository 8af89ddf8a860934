// Verifies leases: one user of a slot at a time, kept views, early and double release, poison.
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/allocator/workspace_rig.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

class WorkspaceLeaseTest : public WorkspaceTest {
 protected:
  void OpenWith(bool poison) {
    WorkspaceOptions options = Options();
    options.poison = poison;
    ASSERT_OK(Open(options));
  }
};

// Field case 22: two callers never both get the base while the first one's buffer is alive.
TEST_F(WorkspaceLeaseTest, ASecondUserIsRefusedWhileTheFirstHoldsTheSlot) {
  OpenWith(false);
  ASSERT_OK_AND_ASSIGN(WorkspaceLease a, Take("a", 4096));
  const Bytes input = Pattern(4096, 1);
  WriteBytes(*device_, *stream_, a.address(0), input);
  const absl::Status refused = Take("b", 4096).status();
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kBusy));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("leased to a"));
  EXPECT_EQ(ReadBytes(*device_, *stream_, a.range(0)), input);
  EXPECT_OK(Take("b", 4096, {.lane = 1}));  // another slot is another place
  // Both in one request are disjoint.
  ASSERT_OK(a.Release());
  ASSERT_OK_AND_ASSIGN(const WorkspaceLease both,
                       workspace_->Acquire({}, *stream_, "a", {{"in", 4096}, {"out", 4096}}));
  WriteBytes(*device_, *stream_, both.address(0), input);
  ASSERT_OK(device_->Fill(*stream_, both.address(1), 7, 4096));
  EXPECT_EQ(ReadBytes(*device_, *stream_, both.range(0)), input);
}

TEST_F(WorkspaceLeaseTest, AViewKeptAcrossCallsOrUsedByAnotherRefuses) {
  OpenWith(false);
  ASSERT_OK_AND_ASSIGN(WorkspaceLease lease, Take("a", 100));
  ASSERT_OK_AND_ASSIGN(const WorkspaceView view, lease.View(0));
  EXPECT_EQ(*view.Resolve("a"), lease.range(0));
  EXPECT_THAT(view.Resolve("b"), IsErrorKind(ErrorKind::kHeld));
  EXPECT_THAT(lease.View(1), IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK(lease.Release());
  EXPECT_THAT(view.Resolve("a"), IsErrorKind(ErrorKind::kStale));
  EXPECT_THAT(lease.View(0), IsErrorKind(ErrorKind::kStale));
  // The next lease has the same address: only the generation tells.
  ASSERT_OK_AND_ASSIGN(const WorkspaceLease next, Take("a", 100));
  EXPECT_NE(next.generation(), view.generation());
  EXPECT_THAT(view.Resolve("a"), IsErrorKind(ErrorKind::kStale));
  EXPECT_THAT(view.Pin("a"), IsErrorKind(ErrorKind::kStale));
}

TEST_F(WorkspaceLeaseTest, ReleasedTwiceOrTooEarlyIsAnError) {
  OpenWith(false);
  ASSERT_OK_AND_ASSIGN(WorkspaceLease lease, Take("a", 100));
  {
    ASSERT_OK_AND_ASSIGN(const WorkspaceView view, lease.View(0));
    ASSERT_OK_AND_ASSIGN(const WorkspacePin pin, view.Pin("a"));
    EXPECT_THAT(lease.Release(), IsErrorKind(ErrorKind::kHeld));
    EXPECT_TRUE(lease.live());
    EXPECT_OK(view.Resolve("a"));
  }
  EXPECT_OK(lease.Release());
  EXPECT_THAT(lease.Release(), IsErrorKind(ErrorKind::kClosed));
  WorkspaceLease none;
  EXPECT_THAT(none.Release(), IsErrorKind(ErrorKind::kClosed));
  ASSERT_OK_AND_ASSIGN(WorkspaceLease first, Take("a", 100));
  WorkspaceLease second = std::move(first);
  EXPECT_THAT(first.Release(), IsErrorKind(ErrorKind::kClosed));  // NOLINT: moved from
  EXPECT_OK(second.Release());
  // One that goes under a pin keeps its slot until the pin is gone.
  std::optional<WorkspacePin> pin;
  {
    ASSERT_OK_AND_ASSIGN(const WorkspaceLease gone, Take("a", 100));
    auto pinned = gone.View(0)->Pin("a");
    ASSERT_OK(pinned);
    pin.emplace(*std::move(pinned));
  }
  EXPECT_THAT(Take("b", 100), IsErrorKind(ErrorKind::kBusy));
  pin.reset();
  EXPECT_OK(Take("b", 100));
}

TEST_F(WorkspaceLeaseTest, PoisonLiesUnderALeaseAtItsBeginAndAfterItsEnd) {
  OpenWith(true);
  ASSERT_OK_AND_ASSIGN(WorkspaceLease lease, Take("a", g_ + 100));
  const AddressRange range = lease.range(0);
  EXPECT_TRUE(AllBytesAre(ReadBytes(*device_, *stream_, range), 0xFF));
  WriteBytes(*device_, *stream_, range.base, Pattern(range.bytes, 2));
  ASSERT_OK(lease.Release());
  EXPECT_TRUE(AllBytesAre(ReadBytes(*device_, *stream_, range), 0xFF));  // a kept address reads NaN
  EXPECT_OK(Take("b", 100));
  // Sleep does not disturb it.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Residency> residency, Residency::Create(*arena_));
  ASSERT_OK(residency->Sleep({"workspace"}, Soon()));
  ASSERT_OK(residency->Wake({"workspace"}));
  EXPECT_TRUE(AllBytesAre(ReadBytes(*device_, *stream_, range), 0xFF));
  EXPECT_OK(Take("b", 2 * g_));
}

// Negative control: an address kept across calls is written through. The next lease finds it and
// names who had it; the one after that works.
TEST_F(WorkspaceLeaseTest, AWriteThroughAKeptAddressIsFoundByTheNextLease) {
  OpenWith(true);
  ASSERT_OK_AND_ASSIGN(WorkspaceLease lease, Take("keeper", 3 * g_));
  const DeviceAddress kept = lease.address(0) + 2 * g_ + 8;
  ASSERT_OK(lease.Release());
  ASSERT_OK(device_->Fill(*stream_, kept, 0, 1));
  const absl::Status found = Take("next", 100).status();
  EXPECT_THAT(found, IsErrorKind(ErrorKind::kCorrupted));
  EXPECT_THAT(std::string(found.message()), HasSubstr("last user was keeper"));
  EXPECT_OK(Take("next", 100));
  // Without poison nobody looks.
  OpenWith(false);
  ASSERT_OK_AND_ASSIGN(lease, Take("keeper", 4096));
  ASSERT_OK(lease.Release());
  ASSERT_OK(device_->Fill(*stream_, Base({}), 0, 1));
  EXPECT_OK(Take("next", 100));
}

// Graphs write to the slot between leases: that is no fault.
TEST_F(WorkspaceLeaseTest, ASlotThatIsCapturedIntoIsPoisonedButNotLookedAt) {
  OpenWith(true);
  ASSERT_OK(Take("a", 4096));
  ASSERT_OK_AND_ASSIGN(const SpanId span, workspace_->CaptureSpan({}));
  ASSERT_OK(device_->Fill(*stream_, arena_->range(span).base, 0, 4096));
  ASSERT_OK_AND_ASSIGN(const WorkspaceLease lease, Take("a", 4096));
  EXPECT_TRUE(AllBytesAre(ReadBytes(*device_, *stream_, lease.range(0)), 0xFF));
}

// Inside a step the same request is one buffer of the step's plan: measured, then served at the
// same place, overlapping nothing that is alive.
TEST_F(WorkspaceLeaseTest, InsideAStepARequestIsPartOfThePlan) {
  for (const bool poison : {false, true}) {
    OpenWith(poison);
    DeviceAddress out, q;
    const Step step = [&](StepContext& context) -> absl::Status {
      HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer own, context.Scratch("own", 1000));
      HOLDFAST_RETURN_IF_ERROR(context.Fill(own.address(), 5, 1000));
      HOLDFAST_ASSIGN_OR_RETURN(
          WorkspaceLease lease,
          workspace_->AcquireIn(context, {}, "mla", {{"q", 3}, {"out", 2000}}));
      q = lease.address(0);
      out = lease.address(1);
      HOLDFAST_RETURN_IF_ERROR(context.Fill(out, 1, 2000));
      return lease.Release();
    };
    ASSERT_OK_AND_ASSIGN(const ScratchPlan plan, MeasureStep(*arena_, *stream_, "step", step));
    EXPECT_EQ(plan.height, 1024u + 2304u);
    ASSERT_OK(workspace_->Reserve("graphs lane0", {{"planned scratch", plan.height}}));
    ASSERT_OK(workspace_->Lock());
    ASSERT_OK_AND_ASSIGN(const SpanId span, workspace_->CaptureSpan({}));
    ScratchSession session = ScratchSession::Serve("step", arena_->range(span).base,
                                                   arena_->committed_bytes(span), plan);
    StepContext context(*device_, *stream_, ArenaView(*arena_), session);
    ASSERT_OK(step(context));
    ASSERT_OK(session.Finish());
    EXPECT_EQ(out, q + 256);
    EXPECT_TRUE(AllBytesAre(ReadBytes(*device_, *stream_, {out, 2000}), 1));
    // What grew since it was measured is refused: past the lock by name, else by the plan.
    ScratchSession again = ScratchSession::Serve("step", arena_->range(span).base,
                                                 arena_->committed_bytes(span), plan);
    StepContext other(*device_, *stream_, ArenaView(*arena_), again);
    EXPECT_THAT(workspace_->AcquireIn(other, {}, "mla", {{"q", 8192}}),
                IsErrorKind(ErrorKind::kLocked));
    EXPECT_THAT(workspace_->AcquireIn(other, {}, "mla", {{"q", 4}}),
                IsErrorKind(ErrorKind::kPlanMismatch));
    ASSERT_OK_AND_ASSIGN(const WorkspaceLease eager, Take("eager", 16));
    EXPECT_THAT(workspace_->AcquireIn(other, {}, "mla", {{"q", 4}}), IsErrorKind(ErrorKind::kBusy));
  }
}

// Every lane's thread has its own slot; transitions meanwhile refuse calls, and lose none.
TEST_F(WorkspaceLeaseTest, LanesLeaseTheirSlotsBesideEachOtherAndBesideTransitions) {
  OpenWith(true);
  ASSERT_OK(workspace_->Reserve("all", {{"x", 4096}}));
  ASSERT_OK(workspace_->Lock());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Residency> residency, Residency::Create(*arena_));
  std::vector<std::unique_ptr<Stream>> streams;
  for (const WorkspaceSlot slot : workspace_->slots()) {
    ASSERT_OK_AND_ASSIGN(streams.emplace_back(), device_->CreateStream(SlotName(slot)));
    arena_->gate().RegisterStream(streams.back().get());
  }
  std::atomic<int> served{0}, wrong{0};
  std::vector<std::thread> lanes;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    lanes.emplace_back([&, i] {
      const WorkspaceSlot slot = workspace_->slots()[i];
      for (int done = 0; done < 20;) {
        absl::StatusOr<WorkspaceLease> lease =
            workspace_->Acquire(slot, *streams[i], SlotName(slot), {{"x", 4096}});
        if (!lease.ok()) {
          const bool expected = IsErrorKind(lease.status(), ErrorKind::kAsleep) ||
                                IsErrorKind(lease.status(), ErrorKind::kBusy);
          if (!expected) ++wrong;
          std::this_thread::yield();
          continue;
        }
        if (!device_->Fill(*streams[i], lease->address(0), 1, 4096).ok()) ++wrong;
        if (!lease->Release().ok()) ++wrong;
        ++done;
        ++served;
      }
    });
  }
  for (int cycle = 0; cycle < 5; ++cycle) {
    EXPECT_OK(residency->Sleep({"workspace"}, Soon()));
    EXPECT_OK(residency->Wake({"workspace"}));
  }
  for (std::thread& lane : lanes) lane.join();
  EXPECT_EQ(served.load(), 80);
  EXPECT_EQ(wrong.load(), 0);
  for (const std::unique_ptr<Stream>& stream : streams) {
    EXPECT_OK(device_->Synchronize(*stream));
    arena_->gate().UnregisterStream(stream.get());
  }
}

}  // namespace
}  // namespace holdfast
