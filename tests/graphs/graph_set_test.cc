// Verifies the graphs of a lane together: measured, captured largest first, dispatched by bucket,
// and captured again, in place and shifted, with the same words.
#include "graphs/graph_set.h"

#include <stdexcept>

#include "gmock/gmock.h"
#include "tests/graphs/toy_step.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

BucketList Buckets(int limit) { return *BucketList::Default(limit); }

class GraphSetTest : public testing::Test {
 protected:
  GraphSetTest() : set_(*toy_.lane, [this](const GraphKey& key) { return Make(key); }) {
    LoadToyWeights(toy_);
  }

  // The toy step of key.size rows; what a test planted in `before_` and `after_` runs around it.
  absl::StatusOr<Step> Make(const GraphKey& key) {
    return Step([this, key, step = ToyStep(toy_, key.size)](StepContext& context) -> absl::Status {
      if (!context.measuring()) ran_.push_back(key.size);
      if (before_) HOLDFAST_RETURN_IF_ERROR(before_(key, context));
      HOLDFAST_RETURN_IF_ERROR(step(context));
      return after_ ? after_(key, context) : absl::OkStatus();
    });
  }
  void CaptureDecode(int limit) {
    ASSERT_OK(set_.AddPhase(Phase::kDecode, Buckets(limit)));
    ASSERT_OK(set_.Measure());
    ASSERT_OK(set_.Capture(toy_.workspace));
  }
  void ExpectRuns(int n, float first) {
    SetToyInput(toy_, first);
    ASSERT_OK_AND_ASSIGN(Graph* const graph, set_.Dispatch(Phase::kDecode, n));
    ASSERT_OK(graph->Replay());
    ASSERT_OK(toy_.lane->Synchronize());
    EXPECT_EQ(ToyOutput(toy_.staging_out, n), ToyExpected(first, n));
  }

  Toy toy_;
  std::function<absl::Status(const GraphKey&, StepContext&)> before_, after_;
  std::vector<int> ran_;
  GraphSet set_;
};

TEST_F(GraphSetTest, ScratchOfALaneIsTheLargestBucketsNotTheSum) {
  ASSERT_OK(set_.AddPhase(Phase::kDecode, Buckets(64)));
  ASSERT_OK(set_.AddPhase(Phase::kPrefill, *BucketList::Of({32, 64}, 64)));
  ASSERT_OK(set_.Measure());
  EXPECT_THAT(ran_, IsEmpty());
  EXPECT_EQ(set_.scratch_bytes(), 512u);  // two buffers of 64 floats, 256 B each, alive together
  EXPECT_GT(set_.scratch_sum_bytes(), 10 * set_.scratch_bytes());
  EXPECT_GE(set_.plan_ratio(), 1.0);
}

TEST_F(GraphSetTest, WarmsUpAndCapturesLargestFirst) {
  ASSERT_OK(set_.AddPhase(Phase::kDecode, *BucketList::Of({1, 4, 16}, 64)));
  ASSERT_OK(set_.AddPhase(Phase::kPrefill, *BucketList::Of({8}, 64)));
  ASSERT_OK(set_.Measure());
  ASSERT_OK(set_.WarmUp(toy_.workspace));
  EXPECT_THAT(ran_, ElementsAre(16, 8, 4, 1));
  ran_.clear();
  ASSERT_OK(set_.Capture(toy_.workspace));
  EXPECT_THAT(ran_, ElementsAre(16, 8, 4, 1));
  std::vector<std::string> names;
  for (const Graph* graph : set_.graphs()) names.push_back(graph->name());
  EXPECT_THAT(names, ElementsAre("prefill/8", "decode/1", "decode/4", "decode/16"));
  EXPECT_NE(set_.Find({.phase = Phase::kPrefill, .size = 8}), nullptr);
  EXPECT_EQ(set_.Find({.phase = Phase::kPrefill, .size = 9}), nullptr);
}

TEST_F(GraphSetTest, EveryBatchRunsInItsBucketAndPadsAreCounted) {
  CaptureDecode(16);
  std::uint64_t real = 0, pads = 0;
  for (int n = 1; n <= 16; ++n) {
    ExpectRuns(n, static_cast<float>(n));
    real += static_cast<std::uint64_t>(n);
    pads += static_cast<std::uint64_t>(*Buckets(16).Fit(n) - n);
  }
  EXPECT_EQ(set_.counts().replays, 16u);
  EXPECT_EQ(set_.counts().real_rows, real);
  EXPECT_EQ(set_.counts().pad_rows, pads);
  EXPECT_EQ(set_.counts().refused, 0u);
}

TEST_F(GraphSetTest, FieldCase57BatchesWithoutABucketAreRefusedCleanly) {
  CaptureDecode(4);
  const std::uint64_t launches = toy_.device->calls().succeeded(Call::kLaunchGraph);
  for (int n : {5, 0, -1}) {
    const absl::Status refused = set_.Dispatch(Phase::kDecode, n).status();
    ASSERT_THAT(refused, IsErrorKind(ErrorKind::kInvalidArgument));
    EXPECT_THAT(
        std::string(refused.message()),
        AllOf(HasSubstr("decode"), HasSubstr(std::to_string(n)), HasSubstr("largest is 4")));
  }
  EXPECT_THAT(set_.Dispatch(Phase::kPrefill, 1), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_EQ(toy_.device->calls().succeeded(Call::kLaunchGraph), launches);
  EXPECT_EQ(set_.counts().refused, 3u);
  EXPECT_EQ(set_.counts().replays, 0u);
  ExpectRuns(4, 1);
}

TEST_F(GraphSetTest, CallsOutOfOrderAreErrors) {
  EXPECT_THAT(set_.Capture(toy_.workspace), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_THAT(set_.WarmUp(toy_.workspace), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_THAT(set_.Recapture(toy_.workspace), IsErrorKind(ErrorKind::kNotFound));
  ASSERT_OK(set_.AddPhase(Phase::kDecode, Buckets(4)));
  EXPECT_THAT(set_.AddPhase(Phase::kDecode, Buckets(8)), IsErrorKind(ErrorKind::kAlreadyExists));
  ASSERT_OK(set_.Measure());
  EXPECT_THAT(set_.Dispatch(Phase::kDecode, 1), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_THAT(set_.AddPhase(Phase::kPrefill, Buckets(8)), IsErrorKind(ErrorKind::kLocked));
  ASSERT_OK(set_.Capture(toy_.workspace));
  EXPECT_THAT(set_.Measure(), IsErrorKind(ErrorKind::kLocked));
  EXPECT_THAT(set_.Capture(toy_.workspace), IsErrorKind(ErrorKind::kAlreadyExists));
  ExpectRuns(4, 1);
}

TEST_F(GraphSetTest, AWorkspaceTooSmallIsRefusedWithBothSizes) {
  ASSERT_OK(set_.AddPhase(Phase::kDecode, Buckets(4)));
  ASSERT_OK(set_.Measure());
  ASSERT_OK_AND_ASSIGN(
      const SpanId tiny,
      toy_.arena->Reserve(
          {.name = "tiny", .tag = "workspace", .role = Role::kScratch, .bytes = 300}));
  const absl::Status refused = set_.Capture(tiny);
  ASSERT_THAT(refused, IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_EQ(GetErrorInfo(refused)->object, "tiny");
  EXPECT_EQ(GetErrorInfo(refused)->need, set_.scratch_bytes());
  EXPECT_EQ(GetErrorInfo(refused)->have, 300u);
  EXPECT_THAT(set_.WarmUp(SpanId{}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(ran_, IsEmpty());
}

TEST_F(GraphSetTest, AFactoryThatFailsOrThrowsIsAnErrorNamingTheBucket) {
  for (const bool throws : {false, true}) {
    GraphSet set(*toy_.lane, [&](const GraphKey& key) -> absl::StatusOr<Step> {
      if (key.size != 2) return Make(key);
      if (throws) throw std::runtime_error("boom");
      return MakeError({.kind = ErrorKind::kUnsupported}, "no such shape");
    });
    ASSERT_OK(set.AddPhase(Phase::kDecode, Buckets(4)));
    const absl::Status refused = set.Measure();
    EXPECT_THAT(refused,
                IsErrorKind(throws ? ErrorKind::kInvalidArgument : ErrorKind::kUnsupported));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("decode/2"));
    EXPECT_EQ(set.scratch_bytes(), 0u);
  }
}

TEST_F(GraphSetTest, AFailedCaptureKeepsNoGraphAndTheNextOneSucceeds) {
  ASSERT_OK(set_.AddPhase(Phase::kDecode, Buckets(4)));
  ASSERT_OK(set_.Measure());
  before_ = [](const GraphKey& key, StepContext&) -> absl::Status {
    if (key.size == 2) throw std::runtime_error("boom");
    return absl::OkStatus();
  };
  const absl::Status refused = set_.Capture(toy_.workspace);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("decode/2"), HasSubstr("boom")));
  EXPECT_THAT(set_.graphs(), IsEmpty());
  EXPECT_THAT(set_.Dispatch(Phase::kDecode, 4), IsErrorKind(ErrorKind::kNotFound));
  before_ = nullptr;
  ASSERT_OK(set_.Capture(toy_.workspace));
  ExpectRuns(3, 1);
}

TEST_F(GraphSetTest, RecaptureAfterWakeGivesTheSameWords) {
  CaptureDecode(16);
  ASSERT_OK(toy_.Sleep({"weights", "state", "workspace", "kv"}));
  ASSERT_OK(toy_.Wake({"weights", "state", "workspace", "kv"}));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> differences, set_.Recapture(toy_.workspace));
  EXPECT_THAT(differences, IsEmpty());
  ExpectRuns(11, 2);
}

TEST_F(GraphSetTest, RecaptureReportsAPointerThatMovedAndScratchThatChanged) {
  CaptureDecode(4);
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> moved, set_.Recapture(toy_.workspace2));
  ASSERT_THAT(moved, testing::Not(IsEmpty()));
  EXPECT_THAT(moved[0],
              AllOf(HasSubstr("decode/4: node 1 (kernel"), HasSubstr("parameter 0 + 16")));

  after_ = [this](const GraphKey& key, StepContext& context) {  // one bucket grew a node
    return key.size == 2 ? context.Fill(context.Resolve(toy_.input), 0, 4) : absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> grown, set_.Recapture(toy_.workspace));
  EXPECT_THAT(grown, testing::Each(HasSubstr("decode/2: ")));
  EXPECT_THAT(grown, testing::Contains(HasSubstr("nodes: 7, then 8")));

  after_ = [](const GraphKey&, StepContext& context) {
    return context.Scratch("more", 64).status();
  };
  EXPECT_THAT(set_.Recapture(toy_.workspace), IsErrorKind(ErrorKind::kPlanMismatch));
}

TEST_F(GraphSetTest, ShiftedCaptureMovesExactlyTheArenasWords) {
  CaptureDecode(16);
  const MemoryUse before = *toy_.device->Memory();
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> wrong,
                       set_.ShiftedCapture(toy_.workspace, 64 * kGiB));
  EXPECT_THAT(wrong, IsEmpty());
  EXPECT_EQ(toy_.device->Memory()->own_bytes, before.own_bytes);
  ASSERT_OK(set_.ShiftedCapture(toy_.workspace, 64 * kGiB));  // the addresses were given back
  ExpectRuns(5, 2);
  ASSERT_OK(toy_.Sleep({"state"}));  // pages mapped twice would stay
  ASSERT_OK(toy_.Wake({"state"}));
  ExpectRuns(5, 2);
}

TEST_F(GraphSetTest, ShiftedCaptureReportsABakedPointerBySpan) {
  before_ = [this](const GraphKey& key, StepContext& context) -> absl::Status {
    if (key.size != 4) return absl::OkStatus();
    const DeviceAddress baked =
        toy_.arena->range(toy_.output).base + 8;  // not by way of the context
    return ToyAdd(context, context.Resolve(toy_.input), baked, context.Resolve(toy_.output), 2);
  };
  CaptureDecode(8);
  EXPECT_THAT(*set_.Recapture(toy_.workspace), IsEmpty()) << "equal captures cannot show it";
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> wrong,
                       set_.ShiftedCapture(toy_.workspace, 64 * kGiB));
  EXPECT_THAT(wrong,
              ElementsAre(AllOf(HasSubstr("decode/4: node 0 (kernel"), HasSubstr("parameter 0 + 8"),
                                HasSubstr("span 'output' + 8 did not move"))));
}

TEST_F(GraphSetTest, ShiftsThatCannotBeAreRefusedAndLeaveNothing) {
  CaptureDecode(4);
  const std::uint64_t reserved = toy_.device->calls().succeeded(Call::kReserveAddress);
  EXPECT_THAT(set_.ShiftedCapture(toy_.workspace, 0), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(set_.ShiftedCapture(toy_.workspace, 64 * kGiB + 4096),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(toy_.device->calls().succeeded(Call::kReserveAddress), reserved);
  // Somebody else has the addresses.
  const AddressRange window = toy_.arena->window();
  ASSERT_OK_AND_ASSIGN(const AddressRange taken,
                       toy_.device->ReserveAddress(window.bytes, window.base + 64 * kGiB));
  if (taken.base == window.base + 64 * kGiB) {
    EXPECT_THAT(set_.ShiftedCapture(toy_.workspace, 64 * kGiB),
                IsErrorKind(ErrorKind::kAddressTaken));
  }
  ASSERT_OK(toy_.device->FreeAddress(taken));
  EXPECT_OK(set_.ShiftedCapture(toy_.workspace, 64 * kGiB));
}

TEST_F(GraphSetTest, FailingAnyCallOfAShiftedCaptureGivesEverythingBack) {
  CaptureDecode(2);
  CallTable& calls = toy_.device->calls();
  const auto balance = [&] {
    return std::make_pair(
        calls.succeeded(Call::kMap) - calls.succeeded(Call::kUnmap),
        calls.succeeded(Call::kReserveAddress) - calls.succeeded(Call::kFreeAddress));
  };
  const auto before = balance();
  bool fired = true;
  for (std::uint64_t k = 1; fired; ++k) {
    ASSERT_LT(k, 200u);
    calls.FailAt(k);
    const auto result = set_.ShiftedCapture(toy_.workspace, 64 * kGiB);
    fired = calls.Disarm();
    EXPECT_EQ(result.ok(), !fired) << "call " << k;
    EXPECT_EQ(balance(), before) << "call " << k;
  }
  ExpectRuns(2, 3);
}

}  // namespace
}  // namespace holdfast
