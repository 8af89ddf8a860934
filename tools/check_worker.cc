#include <unistd.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "testing/engine_subject.h"
#include "testing/plugin_subject.h"
#include "testing/proofs_run.h"
#include "testing/result_line.h"
#include "testing/watched_child.h"
#include "tools/check.h"

namespace holdfast {
namespace {

using testing::WatchedChild;
using testing::WorkerEvent;

void Tell(const WorkerEvent& event) {
  const std::string line = testing::WriteEvent(event) + "\n";
  for (std::size_t written = 0; written < line.size();) {
    const ssize_t n = write(WatchedChild::kEventFile, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // nobody listens: the watcher has gone
    written += static_cast<std::size_t>(n);
  }
}

void Tell(WorkerEvent::Kind kind, const std::string& text) {
  Tell({.kind = kind, .text = text, .proof = {}, .control = {}});
}

absl::StatusOr<testing::SubjectFactory> MakeFactory(const CheckOptions& options) {
  if (!options.model.empty()) {
    return testing::EngineSubject::Factory({.model = options.model, .dtype = options.dtype});
  }
  HOLDFAST_ASSIGN_OR_RETURN(const std::shared_ptr<const testing::Plugin> plugin,
                            testing::Plugin::Load(options.plugin));
  return testing::PluginSubject::Factory(plugin);
}

absl::StatusOr<testing::BatteryOptions> MakeBatteryOptions(const CheckOptions& options) {
  testing::BatteryOptions battery;
  battery.device = options.device;
  battery.seed = options.seed;
  battery.cycles = options.cycles;
  battery.most_failures = options.most_failures;
  battery.scribble = options.scribble;
  battery.scribbler = testing::ScribblerInThisProgram();
  HOLDFAST_ASSIGN_OR_RETURN(battery.proofs, ProofsOf(options));
  HOLDFAST_ASSIGN_OR_RETURN(battery.controls, ControlsOf(options));
  battery.on_stage = [](const std::string& stage) { Tell(WorkerEvent::Kind::kStage, stage); };
  return battery;
}

absl::Status RunProofsOnly(const testing::SubjectFactory& factory,
                           const testing::BatteryOptions& battery) {
  HOLDFAST_ASSIGN_OR_RETURN(const testing::ProofsRun run,
                            testing::RunProofs(factory, battery, testing::Fault::kNone));
  Tell(WorkerEvent::Kind::kDevice, run.device);
  for (const testing::ProofResult& result : run.results) {
    Tell({.kind = WorkerEvent::Kind::kProof, .text = run.subject, .proof = result, .control = {}});
  }
  return absl::OkStatus();
}

absl::Status RunControls(const testing::SubjectFactory& factory,
                         const testing::BatteryOptions& battery) {
  for (const testing::NegativeControl& control : testing::AllControls()) {
    if (std::find(battery.controls.begin(), battery.controls.end(), control.fault) ==
        battery.controls.end()) {
      continue;
    }
    Tell(WorkerEvent::Kind::kStage, absl::StrCat("control ", testing::FaultName(control.fault)));
    const auto start = std::chrono::steady_clock::now();
    HOLDFAST_ASSIGN_OR_RETURN(const testing::ProofsRun run,
                              testing::RunProofs(factory, battery, control.fault));
    testing::ControlResult result = testing::Judge(control, run);
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    Tell({.kind = WorkerEvent::Kind::kControl, .text = {}, .proof = {}, .control = result});
  }
  return absl::OkStatus();
}

absl::Status Work(const CheckOptions& options) {
  HOLDFAST_ASSIGN_OR_RETURN(const testing::BatteryOptions battery, MakeBatteryOptions(options));
  // Before the subject, so that a wrong device is not taken for a wrong plug-in. Kept to the end: a
  // GPU's context lives as long as somebody holds it and is slow to make.
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                            OpenDevice(battery.device, battery.device_options));
  HOLDFAST_ASSIGN_OR_RETURN(const testing::SubjectFactory factory, MakeFactory(options));
  Tell(WorkerEvent::Kind::kLoaded, "");
  return battery.controls.empty() ? RunProofsOnly(factory, battery) : RunControls(factory, battery);
}

}  // namespace

int CheckWorker(const CheckOptions& options) {
  testing::BecomeWatched();
  if (const absl::Status status = Work(options); !status.ok()) {
    Tell(WorkerEvent::Kind::kRefused, std::string(status.message()));
    return 2;
  }
  Tell(WorkerEvent::Kind::kDone, "");
  return 0;
}

std::vector<std::string> CheckWorkerWords(const CheckOptions& options) {
  std::vector<std::string> words = {"check", "--worker"};
  const auto add = [&words](const char* flag, const std::string& value) {
    words.push_back(absl::StrCat(flag, "=", value));
  };
  if (!options.model.empty()) add("--model", options.model);
  if (!options.plugin.empty()) add("--plugin", options.plugin);
  add("--device", options.device);
  add("--dtype", options.dtype);
  add("--seed", absl::StrCat(options.seed));
  add("--cycles", absl::StrCat(options.cycles));
  add("--failures", absl::StrCat(options.most_failures));
  if (!options.proofs.empty()) add("--proofs", absl::StrJoin(options.proofs, ","));
  if (!options.controls.empty()) add("--controls", absl::StrJoin(options.controls, ","));
  if (!options.scribble) words.push_back("--no-scribble");
  return words;
}

}  // namespace holdfast
