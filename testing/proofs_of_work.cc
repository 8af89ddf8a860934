// No page goes while work that may touch it is admitted, scheduled or running.
#include <algorithm>
#include <chrono>
#include <set>

#include "absl/strings/str_cat.h"
#include "testing/examination.h"
#include "testing/gate.h"
#include "testing/spin.h"

namespace holdfast::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr SpinParams kSpin{.microseconds = 20'000};
constexpr std::chrono::seconds kSleepDeadline{60};

// What the graphs touch; not all there is, if it can be helped: a GPU that gives up its local
// memory waits for every kernel, which would hide a sleep that does not wait.
std::vector<std::string> TouchedTags(Examination& x) {
  std::set<std::string> touched;
  for (const Graph* graph : x.subject().graphs().graphs()) {
    touched.insert(graph->manifest().tags.begin(), graph->manifest().tags.end());
  }
  std::vector<std::string> tags(touched.begin(), touched.end());
  if (tags.size() > 1 && tags.size() == x.all_tags().size()) tags.pop_back();
  return tags;
}

// A sleep that may not wait has to be refused, and must change nothing.
bool MustRefuse(Examination& x, const std::vector<std::string>& tags, const std::string& why) {
  const absl::StatusOr<Picture> before = x.Look(/*contents=*/false);
  if (!x.Ok(before, "looking")) return false;
  const absl::Status slept = x.subject().Sleep(tags, Clock::now()).status();
  if (slept.ok()) {
    x.Find(absl::StrCat("sleep took pages from under ", why, " work"));
    // Back under it before it runs: a GPU that runs into missing pages is lost to the process.
    x.Ok(x.subject().Wake(tags), "waking under scheduled work");
    return false;
  }
  if (!IsErrorKind(slept, ErrorKind::kDeadlineExceeded)) return x.Ok(slept, "sleep");
  const absl::StatusOr<Picture> now = x.Look(/*contents=*/false);
  x.Count("sleeps refused");
  return x.Ok(now, "looking") &&
         x.Same(Proof::kNoEarlyUnmap, StateDifference(*before, *now), "after a refused sleep");
}

bool ProveScheduled(Examination& x, const std::vector<std::string>& tags) {
  Gate gate(x.device(), x.subject().lane().stream());
  if (!x.Ok(gate.status(), "holding the lane")) return false;
  if (!x.Ok(x.subject().Enqueue(), "enqueueing work")) return false;
  return MustRefuse(x, tags, "scheduled");
}

bool ProveAdmitted(Examination& x, const std::vector<std::string>& tags) {
  const absl::StatusOr<AdmissionGate::Pass> pass = x.arena().gate().Enter();
  return x.Ok(pass, "entering the gate") && MustRefuse(x, tags, "admitted");
}

// A sleep that may wait returns when the work is done, not before.
bool ProveRunning(Examination& x, const std::vector<std::string>& tags) {
  Lane& lane = x.subject().lane();
  const absl::StatusOr<std::unique_ptr<Event>> done = x.device().CreateEvent();
  if (!x.Ok(done, "making an event")) return false;
  if (!x.Ok(Launch(x.device(), lane.stream(), SpinOp(), {}, kSpin), "launching a spin kernel") ||
      !x.Ok(x.subject().Enqueue(), "enqueueing work") ||
      !x.Ok(x.device().Record(**done, lane.stream()), "recording an event")) {
    return false;
  }
  const absl::Status slept = x.subject().Sleep(tags, Clock::now() + kSleepDeadline).status();
  const absl::Status finished = x.device().SynchronizeBy(**done, Clock::now());
  if (slept.ok() && !finished.ok()) x.Find("sleep returned while work was still running");
  if (!x.Ok(slept, "sleep over running work")) return false;
  if (!x.Ok(lane.Synchronize(), "waiting for the lane")) return false;
  x.Count("sleeps that waited");
  return x.Wake(tags);
}

}  // namespace

void ProveNoEarlyUnmap(Examination& x) {
  if (!x.Ready()) return;
  const std::vector<std::string> tags = TouchedTags(x);
  if (tags.empty()) return x.Skip("no graph touches a tag");
  if (!ProveScheduled(x, tags)) return;
  if (!x.Ok(x.subject().lane().Synchronize(), "running what was held") || !x.Ready()) return;
  if (!ProveAdmitted(x, tags) || !ProveRunning(x, tags)) return;
  // What was held ran on memory that is whole.
  if (!x.Ready()) return;
  Outputs now;
  if (!x.Run({.seed = x.options().seed}, &now)) return;
  x.Same(Proof::kOutputs, FirstDifference(x.golden(), now), "after held work ran");
}

}  // namespace holdfast::testing
