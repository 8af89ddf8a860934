// What the kit proves things of: a program with an arena, captured graphs and outputs.
//
// An embedder derives from Subject (toy_subject.h shows how), hands the battery a factory,
// and has every proof and every negative control run on its own kernels:
//
//   SubjectFactory factory = [](Device& device, const SubjectOptions& options) {
//     return MyProgram::Create(device, options);
//   };
//   BatteryReport report = RunBattery(factory, {});      // battery.h
//   EXPECT_THAT(report, AllProofsHold());                // matchers.h
#ifndef HOLDFAST_TESTING_SUBJECT_H_
#define HOLDFAST_TESTING_SUBJECT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/ledger.h"
#include "allocator/residency.h"
#include "device/device.h"
#include "device/error.h"
#include "graphs/audit.h"
#include "graphs/graph_set.h"
#include "graphs/lane.h"
#include "testing/fault.h"
#include "testing/outputs.h"

namespace holdfast::testing {

struct SubjectOptions {
  std::uint64_t seed = 1;      // of its contents (weights, tables), if it makes them up
  Fault plant = Fault::kNone;  // only those of PlantedBySubject; anything else is kNone here
};

// One run of the program.
struct RunRequest {
  std::uint64_t seed = 1;    // of the inputs: equal seeds, equal inputs
  bool eager = false;        // enqueue the steps instead of replaying their graphs
  bool poison_pads = false;  // pads of every batch hold other bytes than usual (0xFF, say)
};

// A path that a configuration takes or does not take, with what is set aside for it.
struct PathUse {
  std::string name;
  bool selected = false;             // this configuration runs it
  std::uint64_t reserved_bytes = 0;  // set aside for it in the arena
};

// Everything the proofs ask of a program. Calls come from one thread at a time. The subject is
// captured, locked and awake when its factory returns it, and gives everything back when it dies;
// the device outlives it.
class Subject {
 public:
  virtual ~Subject() = default;

  virtual std::string name() const = 0;
  virtual Arena& arena() = 0;
  virtual Residency& residency() = 0;
  virtual Lane& lane() = 0;
  // Captured. Its step factory is called again by no proof; its steps are (Recapture,
  // ShiftedCapture).
  virtual GraphSet& graphs() = 0;
  // What the graphs were captured with; the default if their scratch_bytes() is 0.
  virtual SpanId workspace() = 0;
  // Ranges outside the arena that its graphs may use, as given to GraphSet::Capture.
  virtual std::vector<ExternalRange> externals() { return {}; }
  // As in its GraphSetOptions.
  virtual AuditPolicy audit_policy() { return {}; }

  // Sets the inputs of request.seed, runs every graph (or the steps, if eager) and waits. Outputs
  // depend on the seed alone: bits that state or earlier runs change are no outputs. Mutable state
  // may change. kAsleep, kUndefinedContents where a graph refuses: nothing was launched then.
  // kUnsupported for requests it cannot serve (eager, poison_pads): that part of a proof is left
  // out.
  virtual absl::StatusOr<Outputs> Run(const RunRequest& request) = 0;
  // Enqueues work that touches the arena to the lane's stream, and does not wait.
  virtual absl::Status Enqueue() = 0;
  // Writes anew what comes back undefined and has no refill hook (WakeContents::kUndefined), so
  // that graphs are admitted again. Called after each wake.
  virtual absl::Status Refill() { return absl::OkStatus(); }

  // How the program itself sleeps and wakes; an engine that keeps a state of its own overrides
  // them. As Residency::Sleep and Wake.
  virtual absl::StatusOr<TransitionReport> Sleep(const std::vector<std::string>& tags,
                                                 Residency::Deadline deadline) {
    return residency().Sleep(tags, deadline);
  }
  virtual absl::StatusOr<TransitionReport> Wake(const std::vector<std::string>& tags) {
    return residency().Wake(tags);
  }

  // Whose its device memory is. kUnsupported: the proof of the ledger is skipped.
  virtual absl::StatusOr<LedgerReport> Memory() {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = name()}, "keeps no ledger");
  }
  // Paths that are selected by configuration. None: the proof of reservations is skipped.
  virtual std::vector<PathUse> Paths() { return {}; }
};

// Makes one, captured and awake, with options.plant planted. Called once for the proofs and once
// for each negative control, each time with a device of its own. kUnsupported if it cannot plant
// the fault: that control is skipped.
using SubjectFactory = std::function<absl::StatusOr<std::unique_ptr<Subject>>(
    Device& device, const SubjectOptions& options)>;

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_SUBJECT_H_
