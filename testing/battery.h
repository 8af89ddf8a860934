// The battery: every proof on one subject, then every negative control on a subject of its own.
//
// A control plants its fault and runs the proofs again: exactly the aimed one must fail, by name.
// A proof that no control can make fail proves nothing, so a control that does not bite fails the
// battery as a broken proof does.
#ifndef HOLDFAST_TESTING_BATTERY_H_
#define HOLDFAST_TESTING_BATTERY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device/device.h"
#include "testing/proof.h"
#include "testing/scribbler_program.h"
#include "testing/subject.h"

namespace holdfast::testing {

struct BatteryOptions {
  std::string device = "host";   // as OpenDevice: "host", "cuda:0", "auto"
  DeviceOptions device_options;  // of each subject's device
  std::uint64_t seed = 1;        // of contents, inputs, plans and sampled failures
  int cycles = 3;                // sleeps and wakes of the proofs that count them; at least 1
  // Failing calls tried for each transition: all of them, or so many spread over them. Controls
  // always take a few.
  int most_failures = 0;  // 0: all
  // Another process takes, fills and returns freed memory; which, see scribbler_program.h.
  bool scribble = true;
  ScribblerProgram scribbler;
  // Outputs are compared with this file, too (golden_file.h); empty: only with the first run's.
  std::string golden;
  // What runs; empty: all. kBalance always runs, it is how a subject ends.
  std::vector<Proof> proofs;
  std::vector<Fault> controls;
  bool run_controls = true;
  // Called with the results: the proofs' when all have run (one may block another), each control's
  // as it is there. May be null.
  std::function<void(const ProofResult&)> on_proof;
  std::function<void(const ControlResult&)> on_control;
  std::function<void(const std::string& stage)> on_stage;  // what begins now
};

struct BatteryReport {
  std::string subject, device;
  std::uint64_t seed = 0;
  std::vector<ProofResult> proofs;      // in the order of Proof
  std::vector<ControlResult> controls;  // in the order of AllControls
  double seconds = 0;

  // No proof fails or is blocked, at least one holds; every control that could be planted bites;
  // and, where all controls were run, every proof that holds has one that does.
  bool held() const;
  // Why not: a line each, naming proof or control. Empty if it held.
  std::vector<std::string> complaints() const;
  const ProofResult* Find(Proof proof) const;    // null if it did not run
  const ControlResult* Find(Fault fault) const;  // null if it did not run
  bool controls_ran = false;
  bool all_controls = false;  // none was left out by the options
};

// A subject that cannot be made because a capture refuses a pointer is no error but a report: that
// proof fails and the others are blocked. An error means that nothing could be looked at: the
// device's, the factory's, kInvalidArgument for options.
absl::StatusOr<BatteryReport> RunBattery(const SubjectFactory& factory,
                                         const BatteryOptions& options = {});

// One line a proof and control, as a terminal shows them.
std::string Line(const ProofResult& result);
std::string Line(const ControlResult& result);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_BATTERY_H_
