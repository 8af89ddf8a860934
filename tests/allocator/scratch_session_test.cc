// Verifies that a measured pass yields lifetimes, and that a serving pass must ask for exactly the
// same.
#include "allocator/scratch_session.h"

#include <utility>

#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

constexpr DeviceAddress kBase{0x10000};

// a lives over operations 0 and 1, b over 1, c over 2: a and c may share.
absl::Status RunSteps(ScratchSession& session, std::uint64_t b_bytes = 300) {
  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer a, session.Request("a", 1000));
  session.CountOperation();
  {
    HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer b, session.Request("b", b_bytes));
    session.CountOperation();
  }
  a.Release();
  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer c, session.Request("c", 500));
  session.CountOperation();
  return absl::OkStatus();
}

ScratchPlan MeasuredPlan() {
  ScratchSession session = ScratchSession::Measure("step", kBase);
  EXPECT_OK(RunSteps(session));
  auto plan = PlanScratch(session.measured());
  EXPECT_OK(plan);
  return plan.ok() ? *std::move(plan) : ScratchPlan{};
}

TEST(ScratchSessionTest, MeasuringRecordsSizesAndLifetimes) {
  ScratchSession session = ScratchSession::Measure("step", kBase);
  ASSERT_TRUE(session.measuring());
  ASSERT_OK(RunSteps(session));
  const std::vector<ScratchRequest> requests = session.measured();
  ASSERT_EQ(requests.size(), 3u);
  const auto expect = [&](std::size_t i, std::string name, std::uint64_t bytes, std::uint64_t first,
                          std::uint64_t last) {
    EXPECT_EQ(requests[i].name, name);
    EXPECT_EQ(requests[i].bytes, bytes);
    EXPECT_EQ(requests[i].first, first);
    EXPECT_EQ(requests[i].last, last);
  };
  expect(0, "a", 1000, 0, 1);
  expect(1, "b", 300, 1, 1);
  expect(2, "c", 500, 2, 2);
  EXPECT_OK(session.Finish());
}

TEST(ScratchSessionTest, MeasuredAddressesDoNotShare) {
  ScratchSession session = ScratchSession::Measure("step", kBase);
  ASSERT_OK_AND_ASSIGN(ScratchBuffer a, session.Request("a", 1000));
  a.Release();
  ASSERT_OK_AND_ASSIGN(ScratchBuffer b, session.Request("b", 1));
  EXPECT_EQ(b.address(), kBase + 1024);
  EXPECT_EQ(b.bytes(), 1u);
}

TEST(ScratchSessionTest, ServingGivesPlannedAddresses) {
  const ScratchPlan plan = MeasuredPlan();
  EXPECT_EQ(plan.height, 1024u + 512u);
  ScratchSession session = ScratchSession::Serve("step", kBase, plan.height, plan);
  EXPECT_FALSE(session.measuring());
  ASSERT_OK_AND_ASSIGN(ScratchBuffer a, session.Request("a", 1000));
  EXPECT_EQ(a.address(), kBase + plan.offsets[0]);
  EXPECT_EQ(a.As<char>(), reinterpret_cast<char*>(a.address().value));
  ScratchSession whole = ScratchSession::Serve("step", kBase, plan.height, plan);
  EXPECT_OK(RunSteps(whole));
  EXPECT_OK(whole.Finish());
}

TEST(ScratchSessionTest, OtherSizeIsAMismatchWithBothSizes) {
  const ScratchPlan plan = MeasuredPlan();
  ScratchSession session = ScratchSession::Serve("decode 4", kBase, plan.height, plan);
  const absl::Status status = RunSteps(session, 301);
  EXPECT_THAT(status, IsErrorKind(ErrorKind::kPlanMismatch));
  const auto info = GetErrorInfo(status);
  EXPECT_EQ(info->object, "decode 4");
  EXPECT_EQ(info->need, 301u);
  EXPECT_EQ(info->have, 300u);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("'b'"));
}

TEST(ScratchSessionTest, OtherNameOrderOrNumberIsAMismatch) {
  const ScratchPlan plan = MeasuredPlan();
  ScratchSession renamed = ScratchSession::Serve("step", kBase, plan.height, plan);
  EXPECT_THAT(renamed.Request("b", 1000), IsErrorKind(ErrorKind::kPlanMismatch));

  ScratchSession later = ScratchSession::Serve("step", kBase, plan.height, plan);
  later.CountOperation();
  EXPECT_THAT(later.Request("a", 1000), IsErrorKind(ErrorKind::kPlanMismatch));

  ScratchSession more = ScratchSession::Serve("step", kBase, plan.height, plan);
  ASSERT_OK(RunSteps(more));
  EXPECT_THAT(more.Request("d", 1), IsErrorKind(ErrorKind::kPlanMismatch));

  ScratchSession fewer = ScratchSession::Serve("step", kBase, plan.height, plan);
  ASSERT_OK(fewer.Request("a", 1000));
  EXPECT_THAT(fewer.Finish(), IsErrorKind(ErrorKind::kPlanMismatch));
}

// Living on into operations that another buffer was planned for is an error, not a corruption.
TEST(ScratchSessionTest, OverstayingIsAMismatch) {
  const ScratchPlan plan = MeasuredPlan();
  ScratchSession session = ScratchSession::Serve("step", kBase, plan.height, plan);
  {
    ASSERT_OK_AND_ASSIGN(ScratchBuffer a, session.Request("a", 1000));
    session.CountOperation();
    { ASSERT_OK(session.Request("b", 300)); }
    session.CountOperation();
    ASSERT_OK_AND_ASSIGN(ScratchBuffer c, session.Request("c", 500));
    session.CountOperation();
  }
  EXPECT_THAT(session.Finish(), IsErrorKind(ErrorKind::kPlanMismatch));
}

TEST(ScratchSessionTest, PlanHigherThanItsSpanIsRefused) {
  const ScratchPlan plan = MeasuredPlan();
  ScratchSession session = ScratchSession::Serve("step", kBase, plan.height - 1, plan);
  const auto refused = session.Request("a", 1000);
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_EQ(GetErrorInfo(refused.status())->need, plan.height);
  EXPECT_EQ(GetErrorInfo(refused.status())->have, plan.height - 1);
}

// A buffer ends once, where its last owner lets go.
TEST(ScratchSessionTest, MovedBufferEndsOnce) {
  ScratchSession session = ScratchSession::Measure("step", kBase);
  ScratchBuffer keeper;
  {
    ASSERT_OK_AND_ASSIGN(ScratchBuffer a, session.Request("a", 10));
    keeper = std::move(a);
  }
  session.CountOperation();
  session.CountOperation();
  keeper.Release();
  keeper.Release();
  session.CountOperation();
  EXPECT_EQ(session.measured()[0].last, 1u);
  EXPECT_FALSE(keeper.address());
}

// Until a buffer is let go of, nothing that comes later may share with it.
TEST(ScratchSessionTest, OpenBufferCountsAsAliveForever) {
  ScratchSession session = ScratchSession::Measure("step", kBase);
  ASSERT_OK_AND_ASSIGN(ScratchBuffer a, session.Request("a", 10));
  EXPECT_EQ(session.measured()[0].last, UINT64_MAX);
}

TEST(ScratchSessionTest, OverflowingRequestIsRefused) {
  ScratchSession session = ScratchSession::Measure("step", kBase);
  EXPECT_THAT(session.Request("a", UINT64_MAX), IsErrorKind(ErrorKind::kInvalidArgument));
}

}  // namespace
}  // namespace holdfast
