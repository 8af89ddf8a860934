#include "testing/cycle_driver.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace holdfast::testing {

absl::StatusOr<CycleOutcome> CycleDriver::Take(const CycleStep& step) {
  switch (step.kind) {
    case CycleStep::Kind::kSleep:
    case CycleStep::Kind::kWake: return Transit(step);
    case CycleStep::Kind::kRun: return Run(step);
    case CycleStep::Kind::kScribble: break;
  }
  if (options_.scribble) HOLDFAST_RETURN_IF_ERROR(options_.scribble(freed_bytes()));
  return CycleOutcome{.step = step};
}

absl::StatusOr<CycleOutcome> CycleDriver::Transit(const CycleStep& step) {
  CycleOutcome outcome{.step = step};
  CallTable& calls = subject_.arena().device().calls();
  const std::vector<std::string> tags = step.tags.empty() ? subject_.arena().tags() : step.tags;
  if (step.fail_at > 0) calls.FailAt(step.fail_at);
  absl::StatusOr<TransitionReport> report =
      step.kind == CycleStep::Kind::kSleep
          ? subject_.Sleep(tags, std::chrono::steady_clock::now() + options_.sleep_deadline)
          : subject_.Wake(tags);
  outcome.fired = calls.Disarm();
  if (report.ok()) {
    outcome.report = *std::move(report);
  } else {
    outcome.status = report.status();
    if (!outcome.fired || !IsErrorKind(report.status(), ErrorKind::kDriver)) return outcome.status;
  }
  // A sleep that failed late brings dropped contents back as they are declared, too.
  HOLDFAST_RETURN_IF_ERROR(subject_.Refill());
  return outcome;
}

absl::StatusOr<CycleOutcome> CycleDriver::Run(const CycleStep& step) {
  CycleOutcome outcome{.step = step};
  absl::StatusOr<Outputs> outputs = subject_.Run({.seed = step.seed.value_or(options_.seed)});
  Arena& arena = subject_.arena();
  const std::vector<std::string> tags = arena.tags();
  const bool all_awake = std::none_of(tags.begin(), tags.end(),
                                      [&](const std::string& tag) { return arena.asleep(tag); });
  if (outputs.ok()) {
    const std::vector<Graph*> graphs = subject_.graphs().graphs();
    for (const Graph* graph : graphs) {
      for (const std::string& tag : graph->manifest().tags) {
        if (!arena.asleep(tag)) continue;
        return MakeError({.kind = ErrorKind::kInternal, .object = graph->name()},
                         absl::StrCat("was run while ", tag, " was asleep"));
      }
    }
    outcome.outputs = *std::move(outputs);
    return outcome;
  }
  outcome.status = outputs.status();
  if (all_awake || !IsErrorKind(outcome.status, ErrorKind::kAsleep)) return outcome.status;
  return outcome;
}

absl::StatusOr<std::vector<CycleOutcome>> CycleDriver::Drive(
    const CyclePlan& plan, const std::function<absl::Status(const CycleOutcome&)>& after) {
  std::vector<CycleOutcome> outcomes;
  for (const CycleStep& step : plan.steps()) {
    const auto where = [&] {
      return absl::StrCat("step ", outcomes.size() + 1, " (", step.Text(), ")");
    };
    absl::StatusOr<CycleOutcome> outcome = Take(step);
    if (!outcome.ok()) return Annotate(outcome.status(), where());
    if (after) {
      if (const absl::Status looked = after(*outcome); !looked.ok()) {
        return Annotate(looked, where());
      }
    }
    outcomes.push_back(*std::move(outcome));
  }
  return outcomes;
}

std::uint64_t CycleDriver::freed_bytes() const {
  std::uint64_t freed = 0;
  for (const TagBytes& tag : subject_.arena().bytes_by_tag()) {
    freed += tag.committed_bytes - tag.resident_bytes;
  }
  return freed;
}

}  // namespace holdfast::testing
