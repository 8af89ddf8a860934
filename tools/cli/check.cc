// `holdfast check`: its flags, and where its reports go.
#include "tools/check.h"

#include <cstdio>
#include <memory>
#include <string>

#include "testing/report.h"
#include "tools/command.h"
#include "tools/report.h"

namespace holdfast {
namespace {

struct CheckFlags {
  CheckOptions check;
  bool worker = false;
};

int CheckMain(const CheckFlags& flags) {
  if (flags.worker) return CheckWorker(flags.check);
  const absl::StatusOr<testing::BatteryReport> report = Check(flags.check);
  if (!report.ok()) return Complain(report.status());
  if (!flags.check.json.empty()) {
    if (const absl::Status s = WriteFile(flags.check.json, testing::ReportJson(*report)); !s.ok()) {
      return Complain(s);
    }
  }
  if (!flags.check.junit.empty()) {
    if (const absl::Status s = WriteFile(flags.check.junit, testing::ReportJunit(*report));
        !s.ok()) {
      return Complain(s);
    }
  }
  std::fputs(testing::ReportText(*report).c_str(), stdout);
  return report->held() ? kPass : kFail;
}

}  // namespace

Command AddCheckCommand(CLI::App& parent) {
  const auto flags = std::make_shared<CheckFlags>();
  CheckOptions& o = flags->check;
  CLI::App* const parser = parent.add_subcommand(
      "check", "run every proof and every negative control on a model or on a plug-in");
  parser->add_option("--model", o.model, "folder with config.json and safetensors");
  parser->add_option("--plugin", o.plugin, "shared object that exports holdfast_plugin_v1");
  parser->add_option("--device", o.device, "auto, host or cuda:N")->capture_default_str();
  parser->add_option("--dtype", o.dtype, "of a model: auto, f32 or bf16")->capture_default_str();
  parser->add_option("--seed", o.seed, "of contents, inputs and plans")->capture_default_str();
  parser->add_option("--cycles", o.cycles, "sleeps and wakes of the proofs that count them")
      ->capture_default_str();
  parser
      ->add_option("--failures", o.most_failures,
                   "failing calls tried for each transition; 0: every one")
      ->capture_default_str();
  parser
      ->add_option("--deadline", o.deadline_seconds,
                   "seconds after which a proof that says nothing hangs")
      ->capture_default_str();
  parser->add_option("--proofs", o.proofs, "only these, e.g. kept-bytes,outputs")->delimiter(',');
  parser->add_option("--controls", o.controls, "only these, e.g. flipped-bit")->delimiter(',');
  parser->add_flag("!--no-controls", o.run_controls, "prove, but do not prove the proofs");
  parser->add_flag("!--no-scribble", o.scribble, "no other process writes over the freed pages");
  parser->add_option("--json", o.json, "write the report to this file");
  parser->add_option("--junit", o.junit, "write it as JUnit XML to this file");
  // For the child processes of this command. In no group, so that --help does not show it.
  parser->add_flag("--worker", flags->worker)->group("");
  return {parser, [flags] { return CheckMain(*flags); }};
}

}  // namespace holdfast
