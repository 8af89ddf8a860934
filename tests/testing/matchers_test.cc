// Verifies that each matcher accepts what is the same and rejects, with a reason, what is not.
#include "testing/matchers.h"

#include <cstring>

#include "gtest/gtest.h"
#include "testing/foreign_memory.h"
#include "testing/toy_subject.h"
#include "tests/testing/test_options.h"

namespace holdfast::testing {
namespace {

using ::testing::Not;

class MatchersTest : public ::testing::Test {
 protected:
  MatchersTest() : device_(OpenTestDevice()) {
    absl::StatusOr<std::unique_ptr<Subject>> toy = ToySubject::Create(*device_, {});
    EXPECT_THAT(toy, IsOk());
    toy_ = *std::move(toy);
  }
  Picture Look() {
    absl::StatusOr<Picture> picture = TakePicture(*toy_);
    EXPECT_THAT(picture, IsOk());
    return *std::move(picture);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Subject> toy_;
};

TEST_F(MatchersTest, Pictures) {
  const Picture before = Look();
  EXPECT_THAT(TakePicture(*toy_), SameAddresses(before));
  EXPECT_THAT(Look(), SameKeptBytes(before));
  EXPECT_THAT(Look(), SameState(before));

  Picture moved = before;
  moved.addresses.begin()->second.base.value += 1;
  EXPECT_THAT(moved, Not(SameAddresses(before)));
  Picture changed = before;
  changed.kept.begin()->second.front().lo ^= 1;
  EXPECT_THAT(changed, Not(SameKeptBytes(before)));
  changed = before;
  changed.refilled.begin()->second.front().hi ^= 1;
  EXPECT_THAT(changed, Not(SameKeptBytes(before)));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  ASSERT_THAT(toy_->Sleep({"kv"}, deadline), IsOk());
  EXPECT_THAT(Look(), Not(SameState(before)));
}

TEST_F(MatchersTest, Outputs) {
  const absl::StatusOr<testing::Outputs> golden = toy_->Run({.seed = 1});
  ASSERT_THAT(golden, IsOk());
  EXPECT_THAT(toy_->Run({.seed = 1}), SameOutputs(*golden));
  EXPECT_THAT(toy_->Run({.seed = 2}), Not(SameOutputs(*golden)));
  const absl::StatusOr<testing::Outputs> error = absl::InternalError("no outputs");
  EXPECT_THAT(error, Not(SameOutputs(*golden)));
}

TEST_F(MatchersTest, Ledger) {
  const absl::StatusOr<LedgerReport> ledger = toy_->Memory();
  EXPECT_THAT(ledger, LedgerAddsUp());
  LedgerReport wrong = *ledger;
  wrong.unexplained_bytes = wrong.bound_bytes() + 1;
  EXPECT_THAT(wrong, Not(LedgerAddsUp()));
}

TEST_F(MatchersTest, Pointers) {
  const Graph& graph = *toy_->graphs().graphs().front();
  EXPECT_THAT(graph.captured().View(), NoForeignPointer(toy_->arena()));
  GraphView view = *graph.captured().View();
  const absl::StatusOr<std::unique_ptr<ForeignMemory>> foreign = ForeignMemory::Create(*device_);
  ASSERT_THAT(foreign, IsOk());
  const std::uint64_t word = (*foreign)->range().base.value;
  for (NodeView& node : view.nodes) {
    if (node.kind != NodeKind::kKernel) continue;
    std::memcpy(node.parameters[0].bytes.data(), &word, sizeof(word));
    break;
  }
  EXPECT_THAT(view, Not(NoForeignPointer(toy_->arena())));
  EXPECT_THAT(view,
              NoForeignPointer(toy_->arena(), {{.name = "own", .range = (*foreign)->range()}}));
}

TEST_F(MatchersTest, Errors) {
  const absl::Status error =
      MakeError({.kind = ErrorKind::kAsleep, .object = "kv"}, "is not resident");
  EXPECT_THAT(error, FailsWith(ErrorKind::kAsleep));
  EXPECT_THAT(error, FailsWith(ErrorKind::kAsleep, "kv"));
  EXPECT_THAT(error, Not(FailsWith(ErrorKind::kAsleep, "weights")));
  EXPECT_THAT(error, Not(FailsWith(ErrorKind::kBusy)));
  EXPECT_THAT(error, Not(IsOk()));
  EXPECT_THAT(absl::OkStatus(), Not(FailsWith(ErrorKind::kAsleep)));
}

TEST(BatteryMatcherTest, ABrokenProofOrAControlThatMissesDoesNotMatch) {
  BatteryReport report;
  report.proofs = {{.proof = Proof::kOutputs, .verdict = Verdict::kHolds, .detail = "3 runs"}};
  EXPECT_THAT(report, AllProofsHold());
  report.all_controls = report.controls_ran = true;
  EXPECT_THAT(report, Not(AllProofsHold()));  // nothing can make it fail
  report.controls = {
      {.control = {Fault::kOtherOutput, Proof::kOutputs}, .bites = true, .detail = ""}};
  EXPECT_THAT(report, AllProofsHold());
  report.controls[0].bites = false;
  EXPECT_THAT(report, Not(AllProofsHold()));
  report.all_controls = false;
  EXPECT_THAT(report, Not(AllProofsHold()));  // it misses
  report.controls.clear();
  report.proofs[0].verdict = Verdict::kFails;
  EXPECT_THAT(report, Not(AllProofsHold()));
  EXPECT_THAT(BatteryReport{}, Not(AllProofsHold()));  // nothing was looked at
}

}  // namespace
}  // namespace holdfast::testing
