#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "testing/report.h"

namespace holdfast::testing {
namespace {

// "11 proofs: 10 holds, 1 skipped"
std::string Tally(const std::string& what, const std::vector<std::string>& verdicts) {
  std::map<std::string, int> counts;
  for (const std::string& verdict : verdicts) ++counts[verdict];
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : counts) parts.push_back(absl::StrCat(count, " ", verdict));
  return absl::StrCat(verdicts.size(), " ", what, parts.empty() ? "" : ": ",
                      absl::StrJoin(parts, ", "));
}

}  // namespace

const char* ControlVerdict(const ControlResult& result) {
  return result.skipped ? "skipped" : result.bites ? "bites" : "misses";
}

std::string ReportText(const BatteryReport& report) {
  std::string text;
  std::vector<std::string> proofs, controls;
  for (const ProofResult& result : report.proofs) {
    absl::StrAppend(&text, Line(result), "\n");
    proofs.push_back(VerdictName(result.verdict));
  }
  for (const ControlResult& result : report.controls) {
    absl::StrAppend(&text, Line(result), "\n");
    controls.push_back(ControlVerdict(result));
  }
  absl::StrAppend(&text, report.subject, " on ", report.device, ", seed ", report.seed, "; ",
                  Tally("proofs", proofs), "; ", Tally("negative controls", controls), "; ",
                  absl::StrFormat("%.1f s", report.seconds), "\n");
  const std::vector<std::string> complaints = report.complaints();
  absl::StrAppend(&text, complaints.empty() ? "PASS" : "FAIL: " + complaints.front(), "\n");
  return text;
}

}  // namespace holdfast::testing
