// `holdfast check`: the battery of the testing kit on a model folder or on a plug-in.
//
// Nothing of the subject runs in this process. A worker, a child process of this program, runs the
// proofs, others the negative controls; one that crashes or says nothing for too long is a result
// of the proof or control it was at, and the rest goes on in the next.
#ifndef HOLDFAST_TOOLS_CHECK_H_
#define HOLDFAST_TOOLS_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "testing/battery.h"

namespace holdfast {

struct CheckOptions {
  std::string model, plugin;  // exactly one of them
  std::string device = "auto";
  std::string dtype = "auto";  // of a model
  std::uint64_t seed = 1;
  std::int32_t cycles = 2;
  std::int32_t most_failures = 24;            // failing calls tried for each transition; 0: all
  double deadline_seconds = 60;               // the longest a worker may be at one thing
  std::vector<std::string> proofs, controls;  // names; empty: all
  bool run_controls = true;
  bool scribble = true;
  std::string json, junit;  // files; "": none
};

// An error is bad input or a start that failed: nothing was proved. A report may have failed.
absl::StatusOr<testing::BatteryReport> Check(const CheckOptions& options);

// The worker: runs the proofs of `options`, or its controls if it names any, and writes events to
// WatchedChild::kEventFile. Returns the exit status: 0 if it could say everything.
int CheckWorker(const CheckOptions& options);
// Its command line, behind the program's name.
std::vector<std::string> CheckWorkerWords(const CheckOptions& options);

// kInvalidArgument naming the flag and the name that is none.
absl::StatusOr<std::vector<testing::Proof>> ProofsOf(const CheckOptions& options);
absl::StatusOr<std::vector<testing::Fault>> ControlsOf(const CheckOptions& options);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_CHECK_H_
