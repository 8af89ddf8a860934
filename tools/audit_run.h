// `holdfast audit-run`: starts a program that knows nothing of Holdfast with the preload library,
// and says what that found.
#ifndef HOLDFAST_TOOLS_AUDIT_RUN_H_
#define HOLDFAST_TOOLS_AUDIT_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast {

struct AuditRunOptions {
  std::vector<std::string> command;  // the program and its arguments
  std::string report;                // JSON to this file too; empty: text alone
  bool fail = false;                 // findings make a clean exit a failure
};

struct AuditRunAnswer {
  int status = 0;    // the program's; 128 + signal if one ended it
  std::string text;  // what was found, or that nothing was audited
};

// Waits for the program, whose standard streams are ours. Errors are those of the start: no library
// beside this binary, a report that cannot be written, no such program. A file of the report's name
// is replaced.
absl::StatusOr<AuditRunAnswer> AuditRun(const AuditRunOptions& options);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_AUDIT_RUN_H_
