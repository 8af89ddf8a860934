// Verifies serving by a set: families, no rows, above the largest bucket, closing, and what is
// counted.
#include <stdexcept>

#include "gmock/gmock.h"
#include "graphs/graph_set.h"
#include "tests/graphs/toy_step.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class GraphSetServeTest : public testing::Test {
 protected:
  GraphSetServeTest() { LoadToyWeights(toy_); }

  std::unique_ptr<GraphSet> MakeSet(GraphSetOptions options = {}) {
    return std::make_unique<GraphSet>(
        *toy_.lane, [this](const GraphKey& key) { return absl::StatusOr<Step>(Make(key)); },
        options);
  }
  // The toy step of key.size rows; with a variant, it asks for the scratch of four times as many.
  Step Make(const GraphKey& key) {
    ++made_;
    return [this, key](StepContext& context) -> absl::Status {
      if (!key.variant.empty()) {
        HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer more, context.Scratch("more", 8 * kKiB));
        HOLDFAST_RETURN_IF_ERROR(context.Fill(more.address(), 0, 8 * kKiB));
      }
      return ToyStep(toy_, key.size)(context);
    };
  }
  std::unique_ptr<GraphSet> Captured(GraphSetOptions options, int largest) {
    auto set = MakeSet(std::move(options));
    absl::StatusOr<FamilyId> family = set->AddFamily({}, *BucketList::Of({1, largest}, largest));
    EXPECT_OK(family);
    decode_ = *family;
    EXPECT_OK(set->Measure());
    EXPECT_OK(set->Capture(toy_.workspace));
    return set;
  }
  void ExpectServes(GraphSet& set, int n, Served how) {
    SetToyInput(toy_, 2);
    ASSERT_OK_AND_ASSIGN(const Served served, set.Serve(decode_, n));
    EXPECT_EQ(served, how);
    ASSERT_OK(toy_.lane->Synchronize());
    EXPECT_EQ(ToyOutput(toy_.staging_out, n), ToyExpected(2, n));
  }
  std::uint64_t Launches() { return toy_.device->calls().succeeded(Call::kLaunchGraph); }

  Toy toy_;
  FamilyId decode_;
  int made_ = 0;
};

TEST_F(GraphSetServeTest, FamiliesHaveTheirOwnBucketsAndNames) {
  auto set = MakeSet();
  const GraphFamily plain{}, draft{.query_length = 2, .variant = "draft"};
  ASSERT_OK_AND_ASSIGN(const FamilyId a, set->AddFamily(plain, *BucketList::Of({4}, 4)));
  ASSERT_OK_AND_ASSIGN(const FamilyId b, set->AddFamily(draft, *BucketList::Of({2, 8}, 8)));
  EXPECT_THAT(set->AddFamily(draft, *BucketList::Of({4}, 4)),
              IsErrorKind(ErrorKind::kAlreadyExists));
  EXPECT_THAT(set->AddFamily({.query_length = 0}, *BucketList::Of({4}, 4)),
              IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK(set->Measure());
  EXPECT_EQ(set->scratch_bytes(), 8 * kKiB) << "of the variant";
  ASSERT_OK(set->Capture(toy_.workspace));
  EXPECT_EQ((*set->Dispatch(a, 3))->name(), "decode/4");
  EXPECT_EQ((*set->Dispatch(b, 3))->name(), "decode/8/q2/draft");
  EXPECT_EQ((*set->Dispatch(b, 1))->key().family(), draft);
  EXPECT_THAT(set->Dispatch(FamilyId{2}, 1), IsErrorKind(ErrorKind::kNotFound));
  const absl::Status refused = set->Dispatch(b, 9).status();
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("decode/q2/draft"), HasSubstr("9"), HasSubstr("largest is 8")));
}

TEST_F(GraphSetServeTest, NoRowsLaunchNothingAndAreNoError) {
  const auto set = Captured({}, 8);
  const std::uint64_t launches = Launches();
  EXPECT_EQ(*set->Serve(decode_, 0), Served::kNothing);
  EXPECT_EQ(Launches(), launches);
  EXPECT_EQ(set->counts().empty, 1u);
  EXPECT_EQ(set->counts().replays, 0u);
  EXPECT_THAT(set->Serve(decode_, -1), IsErrorKind(ErrorKind::kInvalidArgument));
  ExpectServes(*set, 5, Served::kReplay);
  EXPECT_EQ(set->counts().pad_rows, 3u);
}

TEST_F(GraphSetServeTest, AboveTheLargestIsRefusedUnlessEagerRunsAreWanted) {
  {
    const auto strict = Captured({}, 8);
    const std::uint64_t launches = Launches();
    EXPECT_THAT(strict->Serve(decode_, 9), IsErrorKind(ErrorKind::kInvalidArgument));
    EXPECT_EQ(strict->counts().refused, 1u);
    EXPECT_EQ(Launches(), launches);
  }
  const auto set = Captured({.eager_above_largest = true}, 8);
  const std::uint64_t launches = Launches();
  const std::uint64_t captures = toy_.device->calls().succeeded(Call::kBeginCapture);
  ExpectServes(*set, 9, Served::kEager);
  ExpectServes(*set, 64, Served::kEager);
  EXPECT_EQ(Launches(), launches);
  EXPECT_EQ(toy_.device->calls().succeeded(Call::kBeginCapture), captures);
  ExpectServes(*set, 8, Served::kReplay);
  EXPECT_EQ(set->counts().eager_runs, 2u);
  EXPECT_EQ(set->counts().eager_rows, 73u);
  EXPECT_EQ(set->counts().replays, 1u);
  EXPECT_EQ(set->counts().refused, 0u);
}

// The eager run would grow the scratch after the lock: refused with both sizes, nothing launched.
TEST_F(GraphSetServeTest, AnEagerRunThatNeedsMoreScratchIsRefusedWithBothSizes) {
  GraphSet set(*toy_.lane,
               [](const GraphKey& key) {
                 return absl::StatusOr<Step>([key](StepContext& context) -> absl::Status {
                   const std::uint64_t bytes = static_cast<std::uint64_t>(key.size) * kKiB;
                   HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer buffer,
                                             context.Scratch("rows", bytes));
                   return context.Fill(buffer.address(), 0, bytes);
                 });
               },
               {.eager_above_largest = true});
  ASSERT_OK_AND_ASSIGN(const FamilyId family, set.AddFamily({}, *BucketList::Of({8}, 8)));
  ASSERT_OK(set.Measure());
  ASSERT_OK(set.Capture(toy_.workspace));
  EXPECT_EQ(*set.Serve(family, 16), Served::kEager) << "the workspace holds 16 KiB";
  const absl::Status refused = set.Serve(family, 17).status();
  ASSERT_THAT(refused, IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_EQ(GetErrorInfo(refused)->need, 17 * kKiB);
  EXPECT_EQ(GetErrorInfo(refused)->have, 16 * kKiB);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("decode/17"));
  EXPECT_EQ(set.counts().refused, 1u);
  EXPECT_EQ(*set.Serve(family, 8), Served::kReplay);
}

TEST_F(GraphSetServeTest, AFactoryThatFailsForAnEagerRunIsItsError) {
  GraphSet set(*toy_.lane,
               [this](const GraphKey& key) -> absl::StatusOr<Step> {
                 if (key.size > 8) throw std::runtime_error("no such size");
                 return Make(key);
               },
               {.eager_above_largest = true});
  ASSERT_OK_AND_ASSIGN(const FamilyId family, set.AddFamily({}, *BucketList::Of({8}, 8)));
  ASSERT_OK(set.Measure());
  ASSERT_OK(set.Capture(toy_.workspace));
  const absl::Status refused = set.Serve(family, 9).status();
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("decode/9"), HasSubstr("no such size")));
  EXPECT_EQ(*set.Serve(family, 8), Served::kReplay);
}

TEST_F(GraphSetServeTest, AClosedSetRefusesDispatchAndEveryGraphNamesItself) {
  const auto set = Captured({}, 8);
  ExpectServes(*set, 8, Served::kReplay);
  Graph* const graph = set->Find({.phase = Phase::kDecode, .size = 8});
  ASSERT_NE(graph, nullptr);
  set->Close();
  set->Close();
  const std::uint64_t launches = Launches();
  EXPECT_THAT(set->Dispatch(decode_, 8), IsErrorKind(ErrorKind::kClosed));
  EXPECT_THAT(set->Serve(decode_, 8), IsErrorKind(ErrorKind::kClosed));
  const absl::Status refused = graph->Replay();
  ASSERT_THAT(refused, IsErrorKind(ErrorKind::kClosed));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("decode/8"));
  EXPECT_THAT(graph->ReplayOn(toy_.lane->stream()), IsErrorKind(ErrorKind::kClosed));
  EXPECT_EQ(Launches(), launches);
  EXPECT_EQ(graph->replays(), 1u);
  EXPECT_FALSE(graph->manifest().spans.empty()) << "still readable";
}

TEST_F(GraphSetServeTest, CapturingWarmsUpByItselfOnceAndLocks) {
  const auto set = MakeSet();
  ASSERT_OK(set->AddPhase(Phase::kDecode, *BucketList::Of({4}, 4)));
  ASSERT_OK(set->Measure());
  const std::uint64_t launched = toy_.device->calls().succeeded(Call::kLaunch);
  ASSERT_OK(set->Capture(toy_.workspace));
  EXPECT_EQ(toy_.device->calls().succeeded(Call::kLaunch) - launched, 2 * 4u)
      << "four kernels, run once and recorded once";
  EXPECT_TRUE(toy_.arena->locked());
  EXPECT_THAT(toy_.arena->Reserve({.name = "late", .tag = "state", .bytes = 4}),
              IsErrorKind(ErrorKind::kLocked));
  EXPECT_EQ(set->counts().captures, 1u);
}

TEST_F(GraphSetServeTest, ExecutableMemoryIsCountedAGraph) {
  const auto set = Captured({}, 8);
  std::uint64_t sum = 0;
  for (const Graph* graph : set->graphs()) {
    const ExecutableMemory& memory = graph->executable_memory();
    sum += memory.bytes;
    EXPECT_EQ(memory.estimated, toy_.device->Memory()->process_bytes == 0);
    if (memory.estimated) {
      EXPECT_EQ(memory.bytes, kToyStepNodes * kExecutableBytesPerNode);
    }
    EXPECT_GT(graph->times().capture, 0.0);
    EXPECT_GT(graph->times().audit, 0.0);
  }
  EXPECT_EQ(set->executable_memory().bytes, sum);
}

}  // namespace
}  // namespace holdfast
