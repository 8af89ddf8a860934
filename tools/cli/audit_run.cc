// `holdfast audit-run`: its flags.
#include "tools/audit_run.h"

#include <cstdio>
#include <memory>

#include "tools/command.h"

namespace holdfast {
namespace {

int AuditRunMain(const AuditRunOptions& options) {
  const absl::StatusOr<AuditRunAnswer> answer = AuditRun(options);
  if (!answer.ok()) return Complain(answer.status());
  std::fputs(answer->text.c_str(), stderr);
  return answer->status;
}

}  // namespace

Command AddAuditRunCommand(CLI::App& parent) {
  const auto options = std::make_shared<AuditRunOptions>();
  CLI::App* const parser = parent.add_subcommand(
      "audit-run",
      "run a program and name pointers of its graphs into freed memory (its exit "
      "status is passed on)");
  parser->add_option("command", options->command, "-- PROGRAM ARGUMENTS...")->required();
  parser->add_option("--report", options->report, "write the findings to this file, as JSON");
  parser->add_flag("--fail", options->fail, "with findings, status 1 in place of 0");
  return {parser, [options] { return AuditRunMain(*options); }};
}

}  // namespace holdfast
