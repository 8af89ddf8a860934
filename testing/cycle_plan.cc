#include "testing/cycle_plan.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace holdfast::testing {
namespace {

// Failures are planted among the first calls of a transition: later ones exist for large arenas
// alone.
constexpr std::uint64_t kMostCalls = 16;

}  // namespace

std::string CycleStep::Text() const {
  if (kind == Kind::kScribble) return "scribble";
  if (kind == Kind::kRun) return seed.has_value() ? absl::StrCat("run ", *seed) : "run";
  return absl::StrCat(fail_at > 0 ? absl::StrCat("fail-at ", fail_at, " ") : "",
                      kind == Kind::kSleep ? "sleep " : "wake ",
                      tags.empty() ? "all" : absl::StrJoin(tags, ","));
}

CyclePlan CyclePlan::Random(std::uint64_t seed, const std::vector<std::string>& tags, int steps) {
  std::mt19937_64 random(seed);
  const auto some = [&] {
    std::vector<std::string> chosen;
    for (const std::string& tag : tags) {
      if (random() % 2 == 0) chosen.push_back(tag);
    }
    return chosen;  // empty: all
  };
  CyclePlan plan;
  for (int i = 0; i < steps; ++i) {
    const std::uint64_t what = random() % 8;
    if (what == 0) {
      plan.Run();
      continue;
    }
    if (what % 2 == 0) {
      plan.Wake(some());
    } else {
      plan.Sleep(some());
    }
    if (random() % 3 == 0) plan.FailingAt(1 + random() % kMostCalls);
  }
  return plan.Wake();
}

CyclePlan& CyclePlan::Sleep(std::vector<std::string> tags) {
  steps_.push_back({.kind = CycleStep::Kind::kSleep, .tags = std::move(tags), .seed = {}});
  return *this;
}
CyclePlan& CyclePlan::Wake(std::vector<std::string> tags) {
  steps_.push_back({.kind = CycleStep::Kind::kWake, .tags = std::move(tags), .seed = {}});
  return *this;
}
CyclePlan& CyclePlan::Run(std::optional<std::uint64_t> seed) {
  steps_.push_back({.kind = CycleStep::Kind::kRun, .tags = {}, .seed = seed});
  return *this;
}
CyclePlan& CyclePlan::Scribble() {
  steps_.push_back({.kind = CycleStep::Kind::kScribble, .tags = {}, .seed = {}});
  return *this;
}
CyclePlan& CyclePlan::FailingAt(std::uint64_t k) {
  if (!steps_.empty()) steps_.back().fail_at = k;
  return *this;
}
CyclePlan& CyclePlan::Append(const CyclePlan& other) {
  const std::vector<CycleStep> more = other.steps_;  // it may be this plan
  steps_.insert(steps_.end(), more.begin(), more.end());
  return *this;
}

std::string CyclePlan::Text() const {
  return absl::StrJoin(steps_, "; ", [](std::string* out, const CycleStep& step) {
    absl::StrAppend(out, step.Text());
  });
}

}  // namespace holdfast::testing
