// Takes a subject through a plan of sleeps, wakes, failures and runs.
//
//   CycleDriver driver(subject, {.seed = 7});
//   auto plan = CyclePlan::Parse("sleep all; fail-at 3 wake; wake all; run");
//   auto outcomes = driver.Drive(*plan);      // an error: a step did what it must not
#ifndef HOLDFAST_TESTING_CYCLE_DRIVER_H_
#define HOLDFAST_TESTING_CYCLE_DRIVER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "testing/cycle_plan.h"
#include "testing/subject.h"

namespace holdfast::testing {

struct CycleOutcome {
  CycleStep step;
  // OK; or the error of a transition whose planted failure fired; or kAsleep of a run while what it
  // needs was asleep.
  absl::Status status;
  bool fired = false;              // the planted failure was reached
  TransitionReport report;         // of a transition that succeeded
  std::optional<Outputs> outputs;  // of a run that succeeded
};

struct CycleDriverOptions {
  std::uint64_t seed = 1;                   // of runs that name none
  std::chrono::seconds sleep_deadline{60};  // for running work
  // Takes, fills and returns so many bytes of the device, in another process; null: a scribble step
  // does nothing.
  std::function<absl::Status(std::uint64_t bytes)> scribble;
};

class CycleDriver {
 public:
  // The subject must outlive it.
  CycleDriver(Subject& subject, CycleDriverOptions options)
      : subject_(subject), options_(std::move(options)) {}

  // Runs one step. An error is what must not be: a transition that fails though nothing was planted
  // or fired, a run that is served while its memory sleeps or refused while all is awake. kNotFound
  // for a tag that the arena has not.
  absl::StatusOr<CycleOutcome> Take(const CycleStep& step);
  // Step after step, to the end or to the first error, which then names the step's number and text.
  // `after`, if set, looks at each outcome; its error ends the drive, too.
  absl::StatusOr<std::vector<CycleOutcome>> Drive(
      const CyclePlan& plan, const std::function<absl::Status(const CycleOutcome&)>& after = {});

  // Bytes that all sleeping tags gave up.
  std::uint64_t freed_bytes() const;

 private:
  absl::StatusOr<CycleOutcome> Transit(const CycleStep& step);
  absl::StatusOr<CycleOutcome> Run(const CycleStep& step);

  Subject& subject_;
  CycleDriverOptions options_;
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_CYCLE_DRIVER_H_
