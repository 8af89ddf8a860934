// `holdfast bench capture`: its flags.
#include "tools/bench_capture.h"

#include <cstdio>
#include <memory>

#include "tools/command.h"
#include "tools/report.h"

namespace holdfast {
namespace {

int BenchCaptureMain(const BenchCaptureOptions& options) {
  const absl::StatusOr<BenchCaptureReport> report = BenchCapture(options);
  if (!report.ok()) return Complain(report.status());
  if (!options.json.empty()) {
    if (const absl::Status s = WriteFile(options.json, BenchCaptureJson(*report)); !s.ok()) {
      return Complain(s);
    }
  }
  std::fputs(BenchCaptureText(*report).c_str(), stdout);
  return kPass;
}

}  // namespace

Command AddBenchCaptureCommand(CLI::App& parent) {
  const auto options = std::make_shared<BenchCaptureOptions>();
  CLI::App* const parser = parent.add_subcommand(
      "capture", "what capturing every bucket of a layered step costs, in time and memory");
  parser->add_option("--device", options->device, "auto, host or cuda:N")->capture_default_str();
  parser->add_option("--layers", options->layers, "of the step")->capture_default_str();
  parser->add_option("--width", options->width, "of a row; a multiple of 16")
      ->capture_default_str();
  parser->add_option("--largest", options->largest, "rows of the largest bucket; 512: 51 buckets")
      ->capture_default_str();
  parser->add_option("--json", options->json, "write the result to this file");
  return {parser, [options] { return BenchCaptureMain(*options); }};
}

}  // namespace holdfast
