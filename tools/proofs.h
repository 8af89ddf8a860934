// The proofs of one sleep-wake cycle. Each says what it compared, or fails with a reason of its
// own.
#ifndef HOLDFAST_TOOLS_PROOFS_H_
#define HOLDFAST_TOOLS_PROOFS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine.h"
#include "tools/prompts.h"
#include "tools/report.h"

namespace holdfast {

// A proof that did not hold: the reason as --inject names it (or "outputs", "parity", ...), and
// what was seen.
struct Failure {
  std::string reason;  // empty: holds
  std::string detail;
  bool failed() const { return !reason.empty(); }
  std::string Text() const { return reason + ": " + detail; }
};

// What must be the same after wake, taken before sleep.
struct Before {
  std::uint64_t own_bytes = 0;
  std::map<std::string, std::vector<Hash128>> kept;  // by group
  std::map<std::string, Hash128> refilled;           // spans with a refill hook, by name
  std::map<std::string, DeviceAddress> addresses;    // spans by name
};

// The golden outputs: one list of completions a batch of prompts.
using Outputs = std::vector<std::vector<Completion>>;

absl::StatusOr<Before> TakeBefore(Engine& engine);
absl::StatusOr<Outputs> GenerateAll(Engine& engine, const PromptSet& prompts);

// Leaves work on the lane: a pause, then three replays of the largest decode bucket. A sleep that
// does not wait for it takes the pages from under it. They raise the step counter by three.
inline constexpr std::uint64_t kQueuedReplays = 3;
absl::Status QueueWork(Engine& engine);
// What running work says once pages have gone.
Failure EarlyUnmap(const absl::Status& status);
// What a planted fault does to transitions.
ResidencyFaults FaultsOf(Injection injection);
// Everything that must be as before, but the outputs. Counts in `cycle` what it compared.
Failure CheckAwake(Engine& engine, const Before& before, CycleLine& cycle);
// The queued replays change the kept state and nothing else: it is left out of `before`, to be
// checked by value.
void LeaveOutState(Before& before);

// Sleeps `tags` while replays are still queued on the lane, lets another process scribble, wakes,
// and proves everything but the outputs. Fills `cycle`.
Failure SleepAndWake(Engine& engine, const RunOptions& options, CycleLine& cycle);
// Compares tokens and logit bits with the golden ones.
Failure CompareOutputs(const Outputs& golden, const Outputs& now);

// The reason a failing status stands for.
std::string ReasonOf(const absl::Status& status);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_PROOFS_H_
