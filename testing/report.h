// What a battery found, for people and for machines.
#ifndef HOLDFAST_TESTING_REPORT_H_
#define HOLDFAST_TESTING_REPORT_H_

#include <string>

#include "testing/battery.h"

namespace holdfast::testing {

// One line a proof and a control, a summary, and a last line "PASS" or "FAIL: the first complaint".
std::string ReportText(const BatteryReport& report);
// {"version", "subject", "device", "seed", "seconds", "passed", "complaints": [...], "proofs":
// [{"name", "meaning", "verdict", "detail", "blocked_by", "seconds"}], "controls": [{"name",
// "aimed_at", "verdict": "bites" | "misses" | "skipped", "detail", "seconds"}]}
std::string ReportJson(const BatteryReport& report);
// JUnit XML: a suite of proofs and one of negative controls. What fails, is blocked or misses is a
// failure; what is skipped is skipped.
std::string ReportJunit(const BatteryReport& report);

// "bites", "misses", "skipped"
const char* ControlVerdict(const ControlResult& result);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_REPORT_H_
