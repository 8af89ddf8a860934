// Verifies the battery on the toy subject: every proof holds, every planted fault is caught by the
// proof it is aimed at and by no other, and what cannot fail or bite makes the battery fail.
#include "testing/battery.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "testing/matchers.h"
#include "testing/toy_subject.h"

namespace holdfast::testing {
namespace {

BatteryOptions TestOptions() {
  const char* spec = std::getenv("HOLDFAST_TEST_DEVICE");
  return {.device = spec == nullptr || *spec == '\0' ? "host" : spec,
          .device_options = {.host_capacity_bytes = 512 * kMiB},
          .cycles = 2};
}

TEST(BatteryTest, EveryProofHoldsAndEveryControlBitesOnTheToy) {
  const absl::StatusOr<BatteryReport> report = RunBattery(ToySubject::Create, TestOptions());
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(*report, AllProofsHold());
  EXPECT_EQ(report->proofs.size(), AllProofs().size());
  for (const ProofResult& result : report->proofs) {
    EXPECT_EQ(result.verdict, Verdict::kHolds) << Line(result);
    std::printf("%s\n", Line(result).c_str());
  }
  EXPECT_EQ(report->controls.size(), AllFaults().size());
  for (const ControlResult& result : report->controls) {
    EXPECT_TRUE(result.bites) << Line(result);
    std::printf("%s\n", Line(result).c_str());
  }
}

}  // namespace
}  // namespace holdfast::testing
