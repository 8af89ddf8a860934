// What was found, as text for people and JSON for programs.
#ifndef HOLDFAST_PRELOAD_REPORT_H_
#define HOLDFAST_PRELOAD_REPORT_H_

#include <string>

#include "preload/session.h"

namespace holdfast::preload {

inline constexpr char kReportFormat[] = "holdfast preload report";
inline constexpr int kReportVersion = 1;

// "freed", "workspace grown", "dead pool": what the record makes of it.
const char* FindingKind(const Account::Entry& entry);
// "graph 2: node 3 (kernel scale): parameter 1 + 0 = 0x7f..: #12 cuMemAlloc 4.0 MiB + 0: freed by
// cuMemFree after the capture, reallocated as #57 cuMemAlloc 4.0 MiB"
std::string FindingText(const Account::Entry& entry);

std::string ReportText(const Account& account);
// {"format": "holdfast preload report", "version": 1, "program":..., "pid":..., "driver":...,
//  "recording":..., "allocations": {call: count}, "graphs": [...], "findings": [...],
//  "remapped": [...], "errors": [...]}; docs/preload.md says what each holds.
std::string ReportJson(const Account& account);

// JSON to the file of the settings, or text to stderr. A file that exists already is another
// process's of the same program: then ".<pid>" is put behind the name. Nothing is written of a
// process in which no graph was made and nothing failed, unless a file is asked for.
void Publish(const Account& account);

}  // namespace holdfast::preload

#endif  // HOLDFAST_PRELOAD_REPORT_H_
