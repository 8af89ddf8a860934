#include "tools/check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "testing/result_line.h"
#include "testing/watched_child.h"
#include "tools/progress.h"

namespace holdfast {
namespace {

using testing::BatteryReport;
using testing::ControlResult;
using testing::Fault;
using testing::NegativeControl;
using testing::Proof;
using testing::ProofResult;
using testing::Verdict;
using testing::WatchedChild;
using testing::WorkerEvent;

absl::Status BadFlag(const std::string& flag, const std::string& why) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = flag}, why);
}

absl::Status CheckFlags(const CheckOptions& options) {
  if (options.model.empty() == options.plugin.empty()) {
    return BadFlag("--model, --plugin", "exactly one of them is needed");
  }
  if (options.cycles < 1) return BadFlag("--cycles", "must be at least 1");
  if (options.most_failures < 0) return BadFlag("--failures", "must not be negative");
  if (!(options.deadline_seconds > 0) || options.deadline_seconds > 86'400) {
    return BadFlag("--deadline", "must be more than 0 and at most 86400 seconds");
  }
  if (!options.plugin.empty() && !std::filesystem::is_regular_file(options.plugin)) {
    return MakeError({.kind = ErrorKind::kNotFound, .object = options.plugin}, "no such file");
  }
  HOLDFAST_RETURN_IF_ERROR(ProofsOf(options).status());
  return ControlsOf(options).status();
}

// What came of one worker.
struct WorkerRun {
  std::vector<ProofResult> proofs;
  std::vector<ControlResult> controls;
  std::string device;
  std::string refused;  // why nothing could be looked at; "" if it could
  std::string end;      // "" if it told everything; else how it ended before
  std::string stage;    // what it was at, at the end; "" if nothing had begun
  bool loaded = false;
};

void Take(const WorkerEvent& event, WorkerRun& run, bool& done) {
  switch (event.kind) {
    case WorkerEvent::Kind::kLoaded: run.loaded = true; break;
    case WorkerEvent::Kind::kStage:
      run.stage = event.text;
      ShowStage(event.text);
      break;
    case WorkerEvent::Kind::kProof: run.proofs.push_back(*event.proof); break;
    case WorkerEvent::Kind::kControl: run.controls.push_back(*event.control); break;
    case WorkerEvent::Kind::kDevice: run.device = event.text; break;
    case WorkerEvent::Kind::kRefused: run.refused = event.text; break;
    case WorkerEvent::Kind::kDone: done = true; break;
  }
}

absl::StatusOr<WorkerRun> RunWorker(const CheckOptions& options) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<WatchedChild> child,
                            WatchedChild::Start("/proc/self/exe", CheckWorkerWords(options)));
  const std::chrono::milliseconds patience{
      static_cast<std::int64_t>(std::ceil(options.deadline_seconds * 1000))};
  WorkerRun run;
  bool done = false;
  std::string hung;
  while (!done && run.refused.empty()) {
    const absl::StatusOr<std::optional<std::string>> line = child->NextLine(patience);
    if (!line.ok()) {
      hung = absl::StrFormat("hangs: nothing for %g s", options.deadline_seconds);
      break;
    }
    if (!line->has_value()) break;
    // A plug-in that writes to the event file is as good as one that crashes.
    const absl::StatusOr<WorkerEvent> event = testing::ReadEvent(**line);
    if (!event.ok()) {
      hung = "talks to the watcher";
      break;
    }
    Take(*event, run, done);
  }
  const std::string end = child->End();
  if (done || !run.refused.empty()) return run;
  run.end = !hung.empty() ? hung : !end.empty() ? end : "ended with status 0, too early";
  const std::string said = child->said();
  if (!said.empty()) absl::StrAppend(&run.end, "; it said: ", said);
  return run;
}

std::vector<std::string> NamesOf(const std::vector<Proof>& proofs) {
  std::vector<std::string> names;
  for (const Proof proof : proofs) names.push_back(testing::ProofName(proof));
  return names;
}

// The subject could not even be made: the first proof fails by it and the others are blocked.
void AllBlocked(const std::vector<Proof>& proofs, const std::string& why, BatteryReport& report) {
  for (const Proof proof : proofs) {
    ProofResult result{.proof = proof, .verdict = Verdict::kFails, .detail = why};
    if (proof != proofs.front()) {
      result.verdict = Verdict::kBlocked;
      result.blocked_by = proofs.front();
    }
    report.proofs.push_back(std::move(result));
  }
}

// The balance is looked at by every worker: the worst counts.
void PutBalance(const ProofResult& result, BatteryReport& report) {
  for (ProofResult& known : report.proofs) {
    if (known.proof != Proof::kBalance) continue;
    if (known.verdict == Verdict::kHolds) known = result;
    return;
  }
  report.proofs.push_back(result);
}

// Each proof in a worker of its own, because one of them ended the worker that had them all.
absl::Status ProveOneByOne(const CheckOptions& options, const std::vector<Proof>& proofs,
                           BatteryReport& report) {
  std::string last_end;
  for (const Proof proof : proofs) {
    if (proof == Proof::kBalance) continue;
    CheckOptions one = options;
    one.proofs = NamesOf({proof});
    one.controls.clear();
    HOLDFAST_ASSIGN_OR_RETURN(const WorkerRun run, RunWorker(one));
    if (!run.device.empty()) report.device = run.device;
    for (const ProofResult& result : run.proofs) {
      if (result.proof == Proof::kBalance) {
        PutBalance(result, report);
      } else {
        report.proofs.push_back(result);
      }
    }
    const std::string& why = run.end.empty() ? run.refused : run.end;
    if (why.empty()) continue;
    last_end = why;
    report.proofs.push_back({.proof = proof, .verdict = Verdict::kFails, .detail = why});
  }
  if (report.Find(Proof::kBalance) == nullptr) {
    PutBalance({.proof = Proof::kBalance, .verdict = Verdict::kFails, .detail = last_end}, report);
  }
  std::stable_sort(report.proofs.begin(), report.proofs.end(),
                   [](const ProofResult& a, const ProofResult& b) { return a.proof < b.proof; });
  return absl::OkStatus();
}

absl::Status Prove(const CheckOptions& options, BatteryReport& report) {
  HOLDFAST_ASSIGN_OR_RETURN(std::vector<Proof> proofs, ProofsOf(options));
  if (proofs.empty()) proofs = testing::AllProofs();
  CheckOptions all = options;
  all.controls.clear();
  HOLDFAST_ASSIGN_OR_RETURN(const WorkerRun run, RunWorker(all));
  const std::string subject = options.model.empty() ? options.plugin : options.model;
  if (!run.refused.empty()) {
    return absl::Status(absl::StatusCode::kInvalidArgument, run.refused);
  }
  if (!run.end.empty() && !run.loaded) {
    return MakeError({.kind = ErrorKind::kCorrupted, .object = subject},
                     absl::StrCat("loading it: ", run.end));
  }
  report.device = run.device.empty() ? options.device : run.device;
  if (run.end.empty()) {
    report.proofs = run.proofs;
    return absl::OkStatus();
  }
  if (run.stage.empty()) {
    AllBlocked(proofs, absl::StrCat("making the subject: ", run.end), report);
    return absl::OkStatus();
  }
  return ProveOneByOne(options, proofs, report);
}

// Those asked for whose aimed proof was looked at.
std::vector<NegativeControl> Wanted(const std::vector<Fault>& faults, const BatteryReport& report) {
  std::vector<NegativeControl> wanted;
  for (const NegativeControl& control : testing::AllControls()) {
    const bool named =
        faults.empty() || std::find(faults.begin(), faults.end(), control.fault) != faults.end();
    if (named && report.Find(control.aimed) != nullptr) wanted.push_back(control);
  }
  return wanted;
}

// On a GPU a fault may cost the process its context, so each control has a worker of its own there.
// Elsewhere one worker does them all, and another one what a crash left over.
absl::Status RunControls(const CheckOptions& options, BatteryReport& report) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<Fault> faults, ControlsOf(options));
  std::vector<NegativeControl> left = Wanted(faults, report);
  const bool one_each = report.device != "host";
  while (!left.empty()) {
    CheckOptions some = options;
    some.controls.clear();
    for (const NegativeControl& control : left) {
      some.controls.push_back(testing::FaultName(control.fault));
      if (one_each) break;
    }
    HOLDFAST_ASSIGN_OR_RETURN(const WorkerRun run, RunWorker(some));
    report.controls.insert(report.controls.end(), run.controls.begin(), run.controls.end());
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(
                                                std::min(run.controls.size(), left.size())));
    const std::string& why = run.end.empty() ? run.refused : run.end;
    if (why.empty() || left.empty()) continue;
    report.controls.push_back({.control = left.front(), .detail = why});
    left.erase(left.begin());
  }
  report.controls_ran = !report.controls.empty();
  report.all_controls = faults.empty();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Proof>> ProofsOf(const CheckOptions& options) {
  std::vector<Proof> proofs;
  for (const std::string& name : options.proofs) {
    const std::optional<Proof> proof = testing::ProofOfName(name);
    if (!proof.has_value()) {
      return BadFlag("--proofs", absl::StrCat("there is no proof '", name, "'"));
    }
    proofs.push_back(*proof);
  }
  // In the order they run, each once; the balance is the end of every subject.
  if (!proofs.empty()) proofs.push_back(Proof::kBalance);
  std::sort(proofs.begin(), proofs.end());
  proofs.erase(std::unique(proofs.begin(), proofs.end()), proofs.end());
  return proofs;
}

absl::StatusOr<std::vector<Fault>> ControlsOf(const CheckOptions& options) {
  std::vector<Fault> faults;
  for (const std::string& name : options.controls) {
    const std::optional<Fault> fault = testing::FaultOfName(name);
    if (!fault.has_value()) {
      return BadFlag("--controls", absl::StrCat("there is no negative control '", name, "'"));
    }
    faults.push_back(*fault);
  }
  return faults;
}

absl::StatusOr<BatteryReport> Check(const CheckOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(CheckFlags(options));
  const auto start = std::chrono::steady_clock::now();
  BatteryReport report{.subject = options.model.empty() ? options.plugin : options.model,
                       .device = {},
                       .seed = options.seed};
  HOLDFAST_RETURN_IF_ERROR(Prove(options, report));
  // Where nothing holds, a control could only say so again.
  const bool any_holds =
      std::any_of(report.proofs.begin(), report.proofs.end(),
                  [](const ProofResult& r) { return r.verdict == Verdict::kHolds; });
  if (options.run_controls && any_holds) HOLDFAST_RETURN_IF_ERROR(RunControls(options, report));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ClearProgress();
  return report;
}

}  // namespace holdfast
