// Verifies which operations are over before others, and that scratch is shared only where they are.
#include "allocator/operation_order.h"

#include <random>
#include <string>
#include <utility>

#include "allocator/scratch_session.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

constexpr DeviceAddress kBase{0x10000};

// True if the plan lays the two requests over each other.
bool Overlaid(const ScratchPlan& plan, std::size_t a, std::size_t b) {
  return plan.offsets[a] < plan.offsets[b] + plan.requests[b].bytes &&
         plan.offsets[b] < plan.offsets[a] + plan.requests[a].bytes;
}

ScratchPlan PlanOf(const ScratchSession& session) {
  absl::StatusOr<ScratchPlan> plan = PlanScratch(session.measured());
  EXPECT_OK(plan);
  return plan.ok() ? *std::move(plan) : ScratchPlan{};
}

// Requests `name`, uses it by one operation on `stream`, and lets it go.
void Use(ScratchSession& session, const std::string& name, std::size_t stream,
         OperationStart start = OperationStart::kFull) {
  ASSERT_OK_AND_ASSIGN(const ScratchBuffer buffer, session.Request(name, 1000));
  session.CountOperation(stream, start);
}

TEST(OperationOrderTest, OneStreamIsInOrder) {
  OperationOrder order;
  order.Add(0);
  order.Add(0);
  EXPECT_FALSE(order.branched());
  EXPECT_EQ(order.Latest(0, 1), OperationClock{2});
  EXPECT_EQ(order.OverBefore(1, 1), OperationClock{1});
  EXPECT_TRUE(ClockCovers(order.OverBefore(1, 1), order.Latest(0, 0)));
  EXPECT_FALSE(ClockCovers(order.OverBefore(1, 1), order.Latest(0, 1)));
}

TEST(OperationOrderTest, ForkAndJoinOrderBranches) {
  OperationOrder order;
  order.Add(0);        // 0
  order.Follow(1, 0);  // fork
  order.Add(1);        // 1: side
  order.Add(0);        // 2: beside it
  order.Follow(0, 1);  // join
  order.Add(0);        // 3
  EXPECT_TRUE(order.branched());
  const auto before = [&](std::uint64_t a, std::uint64_t b) {
    return ClockCovers(order.OverBefore(b, b), order.Latest(a, a));
  };
  EXPECT_TRUE(before(0, 1));
  EXPECT_TRUE(before(0, 2));
  EXPECT_FALSE(before(1, 2));
  EXPECT_FALSE(before(2, 1));
  EXPECT_TRUE(before(1, 3));
  EXPECT_TRUE(before(2, 3));
}

TEST(OperationOrderTest, BuffersOfParallelBranchesNeverOverlay) {
  ScratchSession session = ScratchSession::Measure("step", kBase);
  Use(session, "before", 0);
  session.Follow(1, 0);
  Use(session, "side", 1);
  Use(session, "main", 0);
  session.Follow(0, 1);
  Use(session, "after", 0);
  const ScratchPlan plan = PlanOf(session);
  EXPECT_FALSE(Overlaid(plan, 1, 2));
  EXPECT_TRUE(Overlaid(plan, 0, 1) || Overlaid(plan, 0, 2));
  EXPECT_TRUE(Overlaid(plan, 3, 1) || Overlaid(plan, 3, 2));
  EXPECT_EQ(plan.height, 2048u);
  EXPECT_EQ(plan.lower_bound, 2048u) << "the bound knows that the branches meet";
}

// The negative control: by intervals of operations alone, the same step would overlay them.
TEST(OperationOrderTest, IntervalsAloneWouldOverlayThem) {
  ScratchSession session = ScratchSession::Measure("step", kBase);
  session.Follow(1, 0);
  Use(session, "side", 1);
  Use(session, "main", 0);
  std::vector<ScratchRequest> requests = session.measured();
  for (ScratchRequest& request : requests) request.latest = request.over_before = {};
  ASSERT_OK_AND_ASSIGN(const ScratchPlan plan, PlanScratch(requests));
  EXPECT_TRUE(Overlaid(plan, 0, 1));
}

// A consumer that may start early runs beside what is before it: what that read is not free yet.
TEST(OperationOrderTest, ProgrammaticStartsExtendLifetimes) {
  for (const bool programmatic : {false, true}) {
    ScratchSession session = ScratchSession::Measure("step", kBase);
    Use(session, "a", 0);
    Use(session, "b", 0, programmatic ? OperationStart::kProgrammatic : OperationStart::kFull);
    Use(session, "c", 0);  // starts when both are over
    const ScratchPlan plan = PlanOf(session);
    EXPECT_EQ(Overlaid(plan, 0, 1), !programmatic);
    EXPECT_EQ(plan.height, programmatic ? 2048u : 1024u);
  }
}

TEST(OperationOrderTest, AChainOfProgrammaticStartsRunsBesideItsHead) {
  ScratchSession session = ScratchSession::Measure("step", kBase);
  Use(session, "a", 0);
  Use(session, "b", 0, OperationStart::kProgrammatic);
  Use(session, "c", 0, OperationStart::kProgrammatic);
  Use(session, "d", 0);
  const ScratchPlan plan = PlanOf(session);
  EXPECT_FALSE(Overlaid(plan, 0, 1) || Overlaid(plan, 0, 2) || Overlaid(plan, 1, 2));
  EXPECT_EQ(plan.height, 3 * 1024u);
}

// A buffer held over a fork belongs to whatever is enqueued meanwhile, on any stream.
TEST(OperationOrderTest, ABufferHeldOverAForkMeetsBothBranches) {
  ScratchSession session = ScratchSession::Measure("step", kBase);
  {
    ASSERT_OK_AND_ASSIGN(const ScratchBuffer held, session.Request("held", 1000));
    session.Follow(1, 0);
    Use(session, "side", 1);
    Use(session, "main", 0);
  }
  Use(session, "tail", 0);  // not joined: the side may still use what it had
  const ScratchPlan plan = PlanOf(session);
  EXPECT_FALSE(Overlaid(plan, 0, 1) || Overlaid(plan, 0, 2));
  EXPECT_FALSE(Overlaid(plan, 3, 1) || Overlaid(plan, 3, 0));
  EXPECT_TRUE(Overlaid(plan, 3, 2));
}

TEST(OperationOrderTest, AnotherOrderWhenServingIsAMismatch) {
  const auto run = [](ScratchSession& session, std::size_t stream) {
    Use(session, "a", 0);
    session.Follow(1, 0);
    Use(session, "b", stream);
    session.Follow(0, 1);
  };
  ScratchSession measured = ScratchSession::Measure("decode/4", kBase);
  run(measured, 1);
  ScratchPlan plan = PlanOf(measured);
  plan.order = measured.order().fingerprint();
  ScratchSession same = ScratchSession::Serve("decode/4", kBase, plan.height, plan);
  run(same, 1);
  EXPECT_OK(same.Finish());
  ScratchSession moved = ScratchSession::Serve("decode/4", kBase, plan.height, plan);
  run(moved, 0);
  EXPECT_THAT(moved.Finish(), IsErrorKind(ErrorKind::kPlanMismatch));
  EXPECT_EQ(GetErrorInfo(moved.Finish())->object, "decode/4");
}

// Against reachability by brute force, over random steps.
TEST(OperationOrderTest, RandomStepsAgreeWithReachability) {
  std::mt19937_64 random(20251);
  for (int round = 0; round < 100; ++round) {
    OperationOrder order;
    std::vector<std::vector<bool>> reaches;       // [operation][earlier one]
    std::vector<std::vector<bool>> of_stream(3);  // what the next on it follows
    for (int i = 0; i < 30; ++i) {
      const std::size_t stream = random() % 3, other = random() % 3;
      if (random() % 3 == 0 && stream != other) {
        order.Follow(stream, other);
        std::vector<bool>& into = of_stream[stream];
        const std::vector<bool>& from = of_stream[other];
        if (into.size() < from.size()) into.resize(from.size());
        for (std::size_t k = 0; k < from.size(); ++k) into[k] = into[k] || from[k];
        continue;
      }
      order.Add(stream);
      reaches.push_back(of_stream[stream]);
      of_stream[stream].resize(reaches.size());
      of_stream[stream].back() = true;
    }
    for (std::size_t b = 0; b < reaches.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        const bool before = a < reaches[b].size() && reaches[b][a];
        EXPECT_EQ(ClockCovers(order.OverBefore(b, b), order.Latest(a, a)), before)
            << "round " << round << ": " << a << " before " << b;
      }
    }
  }
}

}  // namespace
}  // namespace holdfast
