#include "testing/battery.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "testing/proofs_run.h"

namespace holdfast::testing {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

absl::Status Wrong(const char* option, const char* why) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = option}, why);
}

absl::Status CheckOptions(const BatteryOptions& options) {
  if (options.cycles < 1) return Wrong("cycles", "must be at least 1");
  if (options.most_failures < 0) return Wrong("most_failures", "must not be negative");
  return absl::OkStatus();
}

template <typename T>
bool Contains(const std::vector<T>& wanted, const T& value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

// Those asked for whose proof runs at all.
std::vector<NegativeControl> Selected(const BatteryOptions& options) {
  std::vector<NegativeControl> selected;
  if (!options.run_controls) return selected;
  for (const NegativeControl& control : AllControls()) {
    const bool proof_runs =
        control.aimed == Proof::kBalance || Contains(options.proofs, control.aimed);
    if (proof_runs && Contains(options.controls, control.fault)) selected.push_back(control);
  }
  return selected;
}

}  // namespace

absl::StatusOr<BatteryReport> RunBattery(const SubjectFactory& factory,
                                         const BatteryOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(CheckOptions(options));
  const Clock::time_point start = Clock::now();
  // A GPU's context lives as long as some Device holds it and is slow to make: one is kept.
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Device> keeps_the_context,
                            OpenDevice(options.device, options.device_options));
  HOLDFAST_ASSIGN_OR_RETURN(ProofsRun run, RunProofs(factory, options, Fault::kNone));
  BatteryReport report{.subject = run.subject,
                       .device = run.device,
                       .seed = options.seed,
                       .proofs = std::move(run.results)};
  if (options.on_proof) {
    for (const ProofResult& result : report.proofs) options.on_proof(result);
  }
  for (const NegativeControl& control : Selected(options)) {
    const Clock::time_point began = Clock::now();
    HOLDFAST_ASSIGN_OR_RETURN(const ProofsRun planted, RunProofs(factory, options, control.fault));
    ControlResult result = Judge(control, planted);
    result.seconds = SecondsSince(began);
    if (options.on_control) options.on_control(result);
    report.controls.push_back(std::move(result));
    report.controls_ran = true;
  }
  report.all_controls = options.run_controls && options.controls.empty();
  report.seconds = SecondsSince(start);
  return report;
}

}  // namespace holdfast::testing
