// Verifies the heat program on an installed holdfast: its arithmetic by hand, the rest by the kit.
//
//   outside_test [--device D] [--plant FAULT]   (and GoogleTest's own flags)
//
// With --plant the program is wrong, and a test must fail that says how.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "gmock/gmock.h"
#include "heat/subject.h"
#include "holdfast/testing/battery.h"
#include "holdfast/testing/matchers.h"
#include "holdfast/testing/picture.h"

namespace heat {
namespace {

using holdfast::testing::AllProofsHold;
using holdfast::testing::FailsWith;
using holdfast::testing::IsOk;
using holdfast::testing::LedgerAddsUp;
using holdfast::testing::NoForeignPointer;
using holdfast::testing::SameOutputs;

// From the command line.
std::string& DeviceName() {
  static std::string name = "host";
  return name;
}
Fault& Planted() {
  static Fault fault = Fault::kNone;
  return fault;
}

absl::StatusOr<std::unique_ptr<holdfast::testing::Subject>> MakeSubject(holdfast::Device& device) {
  return Subject::Factory(Planted())(device, {});
}

TEST(OutsideTest, WarmthIsWhatArithmeticSays) {
  auto device = holdfast::OpenDevice(DeviceName());
  ASSERT_THAT(device, IsOk());
  auto rods = Rods::Create(**device, MistakeOf(Planted()));
  ASSERT_THAT(rods, IsOk());
  const auto warmth = (*rods)->Step({.seed = 5});
  ASSERT_THAT(warmth, IsOk());
  ASSERT_EQ(warmth->size(), 3u);
  for (const holdfast::Graph* graph : (*rods)->graphs().graphs()) {
    EXPECT_EQ(warmth->at(graph->name()), Rods::Expected(5, graph->key().size)) << graph->name();
    EXPECT_THAT(graph->captured().View(), NoForeignPointer((*rods)->arena()));
  }
  EXPECT_THAT((*rods)->Memory(), LedgerAddsUp());
}

TEST(OutsideTest, SleepTakesEverythingAndWakeBringsItBack) {
  auto device = holdfast::OpenDevice(DeviceName());
  ASSERT_THAT(device, IsOk());
  auto made = MakeSubject(**device);
  ASSERT_THAT(made, IsOk());
  holdfast::testing::Subject& subject = **made;
  const auto before = subject.Run({.seed = 7});
  ASSERT_THAT(before, IsOk());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  ASSERT_THAT(subject.Sleep(subject.arena().tags(), deadline), IsOk());
  EXPECT_EQ((*device)->Memory()->own_bytes, 0u);
  EXPECT_THAT(subject.Run({.seed = 7}), FailsWith(holdfast::ErrorKind::kAsleep));
  ASSERT_THAT(subject.Wake(subject.arena().tags()), IsOk());
  EXPECT_THAT(subject.Run({.seed = 7}), SameOutputs(*before));
}

TEST(OutsideTest, TheBatteryHolds) {
  holdfast::testing::BatteryOptions options;
  options.device = DeviceName();
  options.on_proof = [](const auto& result) { std::puts(Line(result).c_str()); };
  options.on_control = [](const auto& result) { std::puts(Line(result).c_str()); };
  options.run_controls = Planted() == Fault::kNone;
  const auto report = RunBattery(Subject::Factory(Planted()), options);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(*report, AllProofsHold());
}

}  // namespace
}  // namespace heat

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    const auto fault = holdfast::testing::FaultOfName(value);
    if (flag == "--device" && !value.empty()) {
      heat::DeviceName() = value;
    } else if (flag == "--plant" && fault.has_value() &&
               heat::MistakeOf(*fault) != heat::Mistake::kNone) {
      heat::Planted() = *fault;
    } else {
      std::fprintf(stderr, "outside_test: '%s %s' is not --device D or --plant FAULT\n",
                   flag.c_str(), value.c_str());
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
