// `holdfast audit`: its flags.
#include <cstdio>
#include <memory>

#include "tools/audit_command.h"
#include "tools/command.h"

namespace holdfast {
namespace {

int AuditMain(const AuditOptions& options) {
  const absl::StatusOr<AuditAnswer> answer = AuditFiles(options);
  if (!answer.ok()) return Complain(answer.status());
  std::fputs(answer->text.c_str(), stdout);
  return answer->same ? kPass : kFail;
}

}  // namespace

Command AddAuditCommand(CLI::App& parent) {
  const auto options = std::make_shared<AuditOptions>();
  CLI::App* const parser = parent.add_subcommand(
      "audit", "say what graph manifests hold, or how they differ (exit status 1 if they do)");
  parser->add_option("files", options->files, "manifests that `holdfast run --manifest` wrote")
      ->required();
  parser->add_option("--graph", options->graph, "only the graph of this name");
  parser->add_flag("--pointers", options->pointers, "list every pointer");
  parser->add_option("--dot", options->dot,
                     "write the graph for Graphviz to this file, coloured by span");
  parser->add_option("--most", options->most, "differences to print of each file")
      ->capture_default_str();
  return {parser, [options] { return AuditMain(*options); }};
}

}  // namespace holdfast
