// `holdfast soak`: its flags, and where its report goes.
#include "tools/soak.h"

#include <cstdio>
#include <memory>
#include <string>

#include "tools/command.h"
#include "tools/report.h"

namespace holdfast {
namespace {

int SoakMain(const SoakOptions& options) {
  const absl::StatusOr<SoakReport> report = Soak(options);
  if (!report.ok()) return Complain(report.status());
  if (!options.json.empty()) {
    if (const absl::Status s = WriteFile(options.json, SoakJson(*report)); !s.ok()) {
      return Complain(s);
    }
  }
  std::fputs(SoakText(*report).c_str(), stdout);
  return report->passed() ? kPass : kFail;
}

}  // namespace

Command AddSoakCommand(CLI::App& parent) {
  const auto options = std::make_shared<SoakOptions>();
  SoakOptions& o = *options;
  const CLI::AsSizeValue size(false);
  CLI::App* const parser = parent.add_subcommand(
      "soak", "many mixed sleep-wake cycles with failures and a scribbling neighbour");
  parser->add_option("--model", o.model, "folder with config.json and safetensors")->required();
  parser->add_option("--cycles", o.cycles, "how many")->capture_default_str();
  parser->add_option("--seed", o.seed, "of everything random; the report repeats it")
      ->capture_default_str();
  parser->add_option("--device", o.device, "auto, host or cuda:N")->capture_default_str();
  parser->add_option("--chunk-bytes", o.chunk_bytes, "largest physical allocation, e.g. 2MiB")
      ->transform(size);
  parser->add_option("--host-capacity", o.host_capacity_bytes, "memory of the host device")
      ->transform(size);
  parser->add_flag("!--no-scribble", o.scribble, "no other process writes over the freed pages");
  parser->add_option("--json", o.json, "write the report to this file");
  parser
      ->add_option("--inject", o.inject,
                   "plant a fault half-way: stale-pointer, swap-chunks, flip-bit, lost-refresh, "
                   "early-unmap")
      ->transform(CLI::CheckedTransformer(InjectionsByName()).description(""));
  return {parser, [options] { return SoakMain(*options); }};
}

}  // namespace holdfast
