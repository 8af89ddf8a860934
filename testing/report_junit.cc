#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "testing/report.h"

namespace holdfast::testing {
namespace {

// For an attribute in double quotes. XML 1.0 has no way to write most control characters, and what
// is not ASCII may not be UTF-8: both become '?'.
std::string Escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&apos;"; break;
      case '\n': out += "&#10;"; break;
      case '\r': out += "&#13;"; break;
      case '\t': out += "&#9;"; break;
      default: out += c >= 0x20 && c < 0x7F ? c : '?';
    }
  }
  return out;
}

struct Case {
  std::string name;
  std::string failure;  // its type; "" if it passed or was skipped
  bool skipped = false;
  std::string detail;
  double seconds = 0;
};

void AppendSuite(const std::string& name, const std::string& subject,
                 const std::vector<Case>& cases, std::string& xml) {
  double seconds = 0;
  for (const Case& c : cases) seconds += c.seconds;
  absl::StrAppendFormat(
      &xml,
      "  <testsuite name=\"%s\" tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"%d\" "
      "time=\"%.3f\">\n",
      name, cases.size(),
      std::count_if(cases.begin(), cases.end(), [](const Case& c) { return !c.failure.empty(); }),
      std::count_if(cases.begin(), cases.end(), [](const Case& c) { return c.skipped; }), seconds);
  for (const Case& c : cases) {
    absl::StrAppendFormat(&xml, "    <testcase classname=\"%s.%s\" name=\"%s\" time=\"%.3f\"",
                          Escape(subject), name, Escape(c.name), c.seconds);
    const std::string detail = Escape(c.detail);
    if (c.skipped) {
      absl::StrAppendFormat(&xml, ">\n      <skipped message=\"%s\"/>\n    </testcase>\n", detail);
    } else if (!c.failure.empty()) {
      absl::StrAppendFormat(&xml,
                            ">\n      <failure type=\"%s\" message=\"%s\"/>\n    </testcase>\n",
                            c.failure, detail);
    } else {
      xml += "/>\n";
    }
  }
  xml += "  </testsuite>\n";
}

}  // namespace

std::string ReportJunit(const BatteryReport& report) {
  std::vector<Case> proofs, controls;
  for (const ProofResult& result : report.proofs) {
    const bool passed = result.verdict == Verdict::kHolds || result.verdict == Verdict::kSkipped;
    proofs.push_back({.name = result.name(),
                      .failure = passed ? "" : VerdictName(result.verdict),
                      .skipped = result.verdict == Verdict::kSkipped,
                      .detail = result.detail,
                      .seconds = result.seconds});
  }
  for (const ControlResult& result : report.controls) {
    const bool passed = result.skipped || result.bites;
    controls.push_back({.name = result.name(),
                        .failure = passed ? "" : ControlVerdict(result),
                        .skipped = result.skipped,
                        .detail = result.detail,
                        .seconds = result.seconds});
  }
  // What no single proof or control says, such as a proof that no control can make fail.
  std::vector<Case> all;
  const std::vector<std::string> complaints = report.complaints();
  all.push_back({.name = "battery",
                 .failure = complaints.empty() ? "" : "fails",
                 .detail = complaints.empty() ? "" : complaints.front()});
  std::string xml = absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
                                 "<testsuites name=\"holdfast check\">\n");
  AppendSuite("proofs", report.subject, proofs, xml);
  AppendSuite("controls", report.subject, controls, xml);
  AppendSuite("all", report.subject, all, xml);
  return xml + "</testsuites>\n";
}

}  // namespace holdfast::testing
