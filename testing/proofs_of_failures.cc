// Addresses over random plans, and failures at every device call.
#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "testing/examination.h"
#include "testing/failing_call.h"
#include "testing/foreign_memory.h"

namespace holdfast::testing {
namespace {

constexpr int kStepsACycle = 12;
constexpr std::uint64_t kControlFailures = 2;  // tried of each transition
constexpr std::chrono::seconds kSleepDeadline{60};

// One transition of all tags, made to fail at each of its calls in turn.
class FailingTransition {
 public:
  FailingTransition(Examination& x, bool sleeps) : x_(x), sleeps_(sleeps) {}

  void TryAll() {
    const std::optional<std::uint64_t> calls = CountCalls();
    if (!calls.has_value()) return;
    const std::uint64_t most =
        x_.is_control() ? kControlFailures : static_cast<std::uint64_t>(x_.options().most_failures);
    for (const std::uint64_t k : SpreadOver(*calls, most)) {
      if (!Try(k)) return;
    }
  }

 private:
  const char* name() const { return sleeps_ ? "sleep" : "wake"; }

  absl::Status Transit() {
    const std::vector<std::string> tags = x_.all_tags();
    if (!sleeps_) return x_.subject().Wake(tags).status();
    return x_.subject().Sleep(tags, std::chrono::steady_clock::now() + kSleepDeadline).status();
  }

  // From all awake to where the transition starts.
  bool Start() { return x_.AllAwake() && (sleeps_ || x_.Sleep(x_.all_tags())); }

  std::optional<std::uint64_t> CountCalls() {
    if (!Start()) return std::nullopt;
    const FailingCall whole = WithFailureAt(x_.device(), kNoFailure, [this] { return Transit(); });
    if (!x_.Ok(whole.status, name())) return std::nullopt;
    return whole.counted;
  }

  bool Try(std::uint64_t k) {
    const std::string what = absl::StrCat(name(), " failing at call ", k);
    if (!x_.AllAwake()) return false;
    const absl::StatusOr<Picture> awake = x_.Look(/*contents=*/true);
    if (!x_.Ok(awake, what) || !Start()) return false;
    const absl::StatusOr<Picture> before = x_.Look(/*contents=*/sleeps_);
    if (!x_.Ok(before, what)) return false;
    const FailingCall failed = WithFailureAt(x_.device(), k, [this] { return Transit(); });
    if (!failed.status.ok()) {
      if (!failed.fired) return x_.Ok(failed.status, what);
      if (!LeftAsBefore(*before, what)) return false;
      if (!x_.Ok(Transit(), what + ", the retry")) return false;
    } else if (failed.fired) {
      x_.Count("of them unheard");
    }
    x_.Count("failures");
    return AllBack(*awake, what);
  }

  bool LeftAsBefore(const Picture& before, const std::string& what) {
    std::unique_ptr<ForeignMemory> leak;
    if (x_.planted(Fault::kLeak)) {
      absl::StatusOr<std::unique_ptr<ForeignMemory>> taken = ForeignMemory::Create(x_.device());
      if (!x_.Ok(taken, "planting the fault")) return false;
      leak = *std::move(taken);
    }
    if (x_.planted(Fault::kHalfDone)) {
      const std::vector<std::string> one = {x_.all_tags().front()};
      const absl::Status half =
          sleeps_
              ? x_.subject().Sleep(one, std::chrono::steady_clock::now() + kSleepDeadline).status()
              : x_.subject().Wake(one).status();
      if (!x_.Ok(half, "planting the fault")) return false;
    }
    const absl::StatusOr<Picture> now = x_.Look(/*contents=*/sleeps_);
    if (!x_.Ok(now, what)) return false;
    bool same = x_.Same(Proof::kAddresses, AddressDifference(before, *now), what);
    same = x_.Same(Proof::kFailures, StateDifference(before, *now), what) && same;
    same = x_.Same(Proof::kFailures, KeptDifference(before, *now), what) && same;
    same = x_.Same(Proof::kFailures, RefilledDifference(before, *now), what) && same;
    // Dropped contents may have gone and come back as declared.
    return same && (!sleeps_ || x_.Ok(x_.subject().Refill(), "refill"));
  }

  bool AllBack(const Picture& awake, const std::string& what) {
    if (!x_.Wake(x_.all_tags())) return false;
    const absl::StatusOr<Picture> now = x_.Look(/*contents=*/true);
    if (!x_.Ok(now, what)) return false;
    const std::string when = what + ", all awake again";
    bool same = x_.Same(Proof::kAddresses, AddressDifference(awake, *now), when);
    same = x_.Same(Proof::kFailures, StateDifference(awake, *now), when) && same;
    same = x_.Same(Proof::kKeptBytes, KeptDifference(awake, *now), when) && same;
    return x_.Same(Proof::kDroppedBytes, RefilledDifference(awake, *now), when) && same;
  }

  Examination& x_;
  bool sleeps_;
};

}  // namespace

void ProveAddresses(Examination& x) {
  if (!x.Ready()) return;
  const absl::StatusOr<Picture> before = x.Look(/*contents=*/false);
  if (!x.Ok(before, "looking")) return;
  const CyclePlan plan =
      CyclePlan::Random(x.options().seed, x.all_tags(), kStepsACycle * x.cycles());
  CycleDriver driver(x.subject(), {.seed = x.options().seed, .scribble = {}});
  const auto compare = [&](const CycleOutcome& outcome) -> absl::Status {
    x.Count(outcome.fired ? "failed transitions" : "other steps");
    const absl::StatusOr<Picture> now = x.Look(/*contents=*/false);
    if (!now.ok()) return now.status();
    x.Same(Proof::kAddresses, AddressDifference(*before, *now), outcome.step.Text());
    return absl::OkStatus();
  };
  if (!x.Ok(driver.Drive(plan, compare), "a random plan")) return;
  // The last step woke everything, past the examination's own wake.
  if (!x.Cycle({x.all_tags().front()})) return;
  const absl::StatusOr<Picture> now = x.Look(/*contents=*/false);
  if (!x.Ok(now, "looking")) return;
  x.Same(Proof::kAddresses, AddressDifference(*before, *now), "at the end");
  x.Count("spans", before->addresses.size());
}

void ProveFailures(Examination& x) {
  if (!x.Ready()) return;
  for (const bool sleeps : {true, false}) {
    FailingTransition(x, sleeps).TryAll();
    if (!x.clean()) return;
  }
}

}  // namespace holdfast::testing
