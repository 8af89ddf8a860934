// `holdfast bench audit`: its flags.
#include "tools/bench_audit.h"

#include <cstdio>
#include <memory>

#include "tools/command.h"
#include "tools/report.h"

namespace holdfast {
namespace {

int BenchAuditMain(const BenchAuditOptions& options) {
  const absl::StatusOr<BenchAuditReport> report = BenchAudit(options);
  if (!report.ok()) return Complain(report.status());
  if (!options.json.empty()) {
    if (const absl::Status s = WriteFile(options.json, BenchAuditJson(*report)); !s.ok()) {
      return Complain(s);
    }
  }
  std::fputs(BenchAuditText(*report).c_str(), stdout);
  return report->within_limits() ? kPass : kFail;
}

}  // namespace

Command AddBenchAuditCommand(CLI::App& parent) {
  const auto options = std::make_shared<BenchAuditOptions>();
  CLI::App* const parser =
      parent.add_subcommand("audit", "what reading and auditing a captured graph costs");
  parser->add_option("--device", options->device, "auto, host or cuda:N")->capture_default_str();
  parser->add_option("--nodes", options->nodes, "operations of each graph")->capture_default_str();
  parser->add_option("--repeats", options->repeats, "of each measurement")->capture_default_str();
  parser->add_option("--json", options->json, "write the result to this file");
  return {parser, [options] { return BenchAuditMain(*options); }};
}

}  // namespace holdfast
