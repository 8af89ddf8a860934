// `holdfast bench replay`: its flags.
#include "tools/bench_replay.h"

#include <cstdio>
#include <memory>

#include "tools/command.h"
#include "tools/report.h"

namespace holdfast {
namespace {

int BenchReplayMain(const BenchReplayOptions& options) {
  const absl::StatusOr<BenchReplayReport> report = BenchReplay(options);
  if (!report.ok()) return Complain(report.status());
  if (!options.json.empty()) {
    if (const absl::Status s = WriteFile(options.json, BenchReplayJson(*report)); !s.ok()) {
      return Complain(s);
    }
  }
  std::fputs(BenchReplayText(*report).c_str(), stdout);
  return report->within_goals() ? kPass : kFail;
}

}  // namespace

Command AddBenchReplayCommand(CLI::App& parent) {
  const auto options = std::make_shared<BenchReplayOptions>();
  CLI::App* const parser =
      parent.add_subcommand("replay", "what a guarded replay costs beyond the bare launch");
  parser->add_option("--device", options->device, "auto, host or cuda:N")->capture_default_str();
  parser->add_option("--launches", options->launches, "of each kind, for each graph")
      ->capture_default_str();
  parser->add_option("--nodes", options->nodes, "sizes of the graphs")
      ->delimiter(',')
      ->capture_default_str();
  parser->add_option("--torch", options->torch,
                     "compare with this JSON file of tools/torch_replay.py");
  parser->add_option("--json", options->json, "write the result to this file");
  return {parser, [options] { return BenchReplayMain(*options); }};
}

}  // namespace holdfast
