// What a battery says, all in all.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "testing/battery.h"

namespace holdfast::testing {
namespace {

bool IsProved(const BatteryReport& report, Proof proof) {
  return std::any_of(report.controls.begin(), report.controls.end(),
                     [&](const ControlResult& c) { return c.control.aimed == proof && c.bites; });
}

}  // namespace

std::vector<std::string> BatteryReport::complaints() const {
  std::vector<std::string> complaints;
  bool any_holds = false;
  for (const ProofResult& result : proofs) {
    if (result.verdict == Verdict::kHolds) any_holds = true;
    if (result.verdict == Verdict::kFails || result.verdict == Verdict::kBlocked) {
      complaints.push_back(Line(result));
    }
  }
  if (!any_holds) complaints.push_back("no proof holds");
  for (const ControlResult& result : controls) {
    if (!result.bites && !result.skipped) complaints.push_back(Line(result));
  }
  if (!all_controls) return complaints;
  for (const ProofResult& result : proofs) {
    if (result.verdict == Verdict::kHolds && !IsProved(*this, result.proof)) {
      complaints.push_back(absl::StrCat("no negative control can make ", result.name(), " fail"));
    }
  }
  return complaints;
}

bool BatteryReport::held() const { return complaints().empty(); }

const ProofResult* BatteryReport::Find(Proof proof) const {
  const auto found = std::find_if(proofs.begin(), proofs.end(),
                                  [&](const ProofResult& r) { return r.proof == proof; });
  return found == proofs.end() ? nullptr : &*found;
}

const ControlResult* BatteryReport::Find(Fault fault) const {
  const auto found = std::find_if(controls.begin(), controls.end(),
                                  [&](const ControlResult& r) { return r.control.fault == fault; });
  return found == controls.end() ? nullptr : &*found;
}

std::string Line(const ProofResult& result) {
  const std::string blocker =
      result.blocked_by.has_value() ? absl::StrCat("by ", ProofName(*result.blocked_by), ": ") : "";
  return absl::StrFormat("%-8s %-15s %s%s (%.2f s)", VerdictName(result.verdict), result.name(),
                         blocker, result.detail, result.seconds);
}

std::string Line(const ControlResult& result) {
  const char* verdict = result.skipped ? "skipped" : result.bites ? "bites" : "MISSES";
  return absl::StrFormat("%-8s %-17s aimed at %s: %s (%.2f s)", verdict, result.name(),
                         ProofName(result.control.aimed), result.detail, result.seconds);
}

}  // namespace holdfast::testing
