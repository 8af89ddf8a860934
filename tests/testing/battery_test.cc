// Verifies the battery on the toy subject: every proof holds, every planted fault is caught by the
// proof it is aimed at and by no other, and what does not bite or cannot fail makes the battery
// fail.
#include "testing/battery.h"

#include <algorithm>
#include <set>

#include "gtest/gtest.h"
#include "testing/golden_file.h"
#include "testing/matchers.h"
#include "testing/proofs_run.h"
#include "testing/toy_subject.h"
#include "tests/testing/test_options.h"

namespace holdfast::testing {
namespace {

TEST(BatteryTest, EveryProofHoldsOnTheToy) {
  BatteryOptions options = TestBattery();
  options.run_controls = false;
  std::size_t heard = 0;
  options.on_proof = [&heard](const ProofResult&) { ++heard; };
  const absl::StatusOr<BatteryReport> report = RunBattery(ToySubject::Create, options);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(*report, AllProofsHold());
  ASSERT_EQ(report->proofs.size(), AllProofs().size());
  for (const ProofResult& result : report->proofs) {
    EXPECT_EQ(result.verdict, Verdict::kHolds) << Line(result);
    EXPECT_FALSE(result.detail.empty()) << result.name();
  }
  EXPECT_EQ(heard, report->proofs.size());
  EXPECT_EQ(report->subject, "toy");
}

// One test a fault: its proof fails, by name, and no other.
class NegativeControlTest : public ::testing::TestWithParam<NegativeControl> {};

TEST_P(NegativeControlTest, BitesItsProofAndNoOther) {
  const NegativeControl control = GetParam();
  const absl::StatusOr<ProofsRun> run = RunProofs(ToySubject::Create, TestBattery(), control.fault);
  ASSERT_THAT(run, IsOk());
  EXPECT_EQ(run->cannot_plant, "");
  for (const ProofResult& result : run->results) {
    if (result.proof == control.aimed) {
      EXPECT_EQ(result.verdict, Verdict::kFails) << Line(result);
    } else {
      EXPECT_NE(result.verdict, Verdict::kFails) << Line(result);
    }
  }
  const ControlResult judged = Judge(control, *run);
  EXPECT_TRUE(judged.bites) << judged.detail;
}
INSTANTIATE_TEST_SUITE_P(Faults, NegativeControlTest, ::testing::ValuesIn(AllControls()),
                         [](const ::testing::TestParamInfo<NegativeControl>& control) {
                           std::string name = FaultName(control.param.fault);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(BatteryTest, EveryFaultHasAControlAndEveryProofHasOne) {
  std::set<Fault> faults;
  std::set<Proof> proofs;
  for (const NegativeControl& control : AllControls()) {
    faults.insert(control.fault);
    proofs.insert(control.aimed);
  }
  EXPECT_EQ(faults.size(), AllFaults().size());
  EXPECT_EQ(proofs.size(), AllProofs().size());
  for (const Fault fault : AllFaults()) EXPECT_EQ(FaultOfName(FaultName(fault)), fault);
  for (const Proof proof : AllProofs()) EXPECT_EQ(ProofOfName(ProofName(proof)), proof);
  EXPECT_EQ(FaultOfName("no-such-fault"), std::nullopt);
}

// A subject that was asked to plant a fault and did not: the control bites nothing.
TEST(BatteryTest, AControlThatBitesNothingFailsTheBattery) {
  BatteryOptions options = TestBattery();
  options.proofs = {Proof::kOutputs};
  options.controls = {Fault::kStaleScratch};
  options.scribble = false;
  const SubjectFactory forgets = [](Device& device, const SubjectOptions& asked) {
    return ToySubject::Create(device, {.seed = asked.seed});
  };
  const absl::StatusOr<BatteryReport> report = RunBattery(forgets, options);
  ASSERT_THAT(report, IsOk());
  EXPECT_FALSE(report->held());
  EXPECT_EQ(report->Find(Proof::kOutputs)->verdict, Verdict::kHolds);
  EXPECT_FALSE(report->Find(Fault::kStaleScratch)->bites);
  EXPECT_FALSE(report->Find(Fault::kStaleScratch)->skipped);
}

TEST(BatteryTest, AFaultTheSubjectCannotPlantIsSkipped) {
  BatteryOptions options = TestBattery();
  options.proofs = {Proof::kOutputs};
  options.controls = {Fault::kPadsCount, Fault::kOtherOutput};
  options.scribble = false;
  const SubjectFactory plain =
      [](Device& device, const SubjectOptions& asked) -> absl::StatusOr<std::unique_ptr<Subject>> {
    if (asked.plant != Fault::kNone) {
      return MakeError({.kind = ErrorKind::kUnsupported, .object = "plain"}, "plants nothing");
    }
    return ToySubject::Create(device, asked);
  };
  const absl::StatusOr<BatteryReport> report = RunBattery(plain, options);
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->held()) << report->complaints().front();
  EXPECT_TRUE(report->Find(Fault::kPadsCount)->skipped);
  EXPECT_TRUE(report->Find(Fault::kOtherOutput)->bites);
}

// The fault is in the program itself: the battery says so, by the name of the proof.
TEST(BatteryTest, AFaultyProgramFailsByTheNameOfItsProof) {
  BatteryOptions options = TestBattery();
  options.proofs = {Proof::kPointers, Proof::kOutputs};
  options.run_controls = false;
  options.scribble = false;
  const SubjectFactory faulty = [](Device& device, const SubjectOptions& asked) {
    return ToySubject::Create(device, {.seed = asked.seed, .plant = Fault::kUnsteadyStep});
  };
  const absl::StatusOr<BatteryReport> report = RunBattery(faulty, options);
  ASSERT_THAT(report, IsOk());
  EXPECT_FALSE(report->held());
  EXPECT_EQ(report->Find(Proof::kPointers)->verdict, Verdict::kFails);
  EXPECT_EQ(report->Find(Proof::kOutputs)->verdict, Verdict::kHolds);
}

TEST(BatteryTest, ComparesWithTheGoldenFile) {
  BatteryOptions options = TestBattery();
  options.proofs = {Proof::kOutputs};
  options.run_controls = false;
  options.scribble = false;
  options.golden = ::testing::TempDir() + "battery.golden";
  const auto device = OpenTestDevice();
  GoldenFile golden{.subject = "toy", .seed = options.seed};
  {
    const absl::StatusOr<std::unique_ptr<Subject>> toy =
        ToySubject::Create(*device, {.seed = options.seed});
    ASSERT_THAT(toy, IsOk());
    const absl::StatusOr<Outputs> outputs = (*toy)->Run({.seed = options.seed});
    ASSERT_THAT(outputs, IsOk());
    golden.outputs = *outputs;
  }
  const auto verdict = [&] {
    EXPECT_THAT(SaveGolden(options.golden, golden), IsOk());
    return RunBattery(ToySubject::Create, options)->Find(Proof::kOutputs)->verdict;
  };
  EXPECT_EQ(verdict(), Verdict::kHolds);
  golden.outputs.begin()->second.front() ^= std::byte{1};
  EXPECT_EQ(verdict(), Verdict::kFails);
  golden.seed = 99;
  EXPECT_EQ(verdict(), Verdict::kFails);
}

// The toy without its ledger and its paths.
class BareToy : public Subject {
 public:
  static absl::StatusOr<std::unique_ptr<Subject>> Create(Device& device,
                                                         const SubjectOptions& options) {
    HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<Subject> toy, ToySubject::Create(device, options));
    return std::unique_ptr<Subject>(new BareToy(std::move(toy)));
  }
  std::string name() const override { return "bare toy"; }
  Arena& arena() override { return toy_->arena(); }
  Residency& residency() override { return toy_->residency(); }
  Lane& lane() override { return toy_->lane(); }
  GraphSet& graphs() override { return toy_->graphs(); }
  SpanId workspace() override { return toy_->workspace(); }
  absl::StatusOr<Outputs> Run(const RunRequest& request) override { return toy_->Run(request); }
  absl::Status Enqueue() override { return toy_->Enqueue(); }

 private:
  explicit BareToy(std::unique_ptr<Subject> toy) : toy_(std::move(toy)) {}
  std::unique_ptr<Subject> toy_;
};

TEST(BatteryTest, WhatASubjectDoesNotKeepIsSkippedAndItsControlsToo) {
  BatteryOptions options = TestBattery();
  options.proofs = {Proof::kAddresses, Proof::kLedger, Proof::kReservations};
  options.controls = {Fault::kMovedSpan, Fault::kHiddenMemory, Fault::kWrongReservation};
  const absl::StatusOr<BatteryReport> report = RunBattery(BareToy::Create, options);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(*report, AllProofsHold());
  EXPECT_EQ(report->Find(Proof::kLedger)->verdict, Verdict::kSkipped);
  EXPECT_EQ(report->Find(Proof::kReservations)->verdict, Verdict::kSkipped);
  EXPECT_TRUE(report->Find(Fault::kHiddenMemory)->skipped);
  EXPECT_TRUE(report->Find(Fault::kWrongReservation)->skipped);
  EXPECT_TRUE(report->Find(Fault::kMovedSpan)->bites);
}

TEST(BatteryTest, RefusesOptionsThatProveNothing) {
  BatteryOptions options = TestBattery();
  options.cycles = 0;
  EXPECT_THAT(RunBattery(ToySubject::Create, options),
              FailsWith(ErrorKind::kInvalidArgument, "cycles"));
  options = TestBattery();
  options.most_failures = -1;
  EXPECT_THAT(RunBattery(ToySubject::Create, options),
              FailsWith(ErrorKind::kInvalidArgument, "most_failures"));
}

TEST(BatteryTest, AMissingScribblerIsNotPassedOver) {
  BatteryOptions options = TestBattery();
  options.proofs = {Proof::kOutputs};
  options.run_controls = false;
  options.scribbler = {"/nowhere/holdfast-scribble", {}};
  const absl::StatusOr<BatteryReport> report = RunBattery(ToySubject::Create, options);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->Find(Proof::kOutputs)->verdict, Verdict::kFails);
}

}  // namespace
}  // namespace holdfast::testing
