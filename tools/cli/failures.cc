// `holdfast failures`: its flags, and where its page goes.
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "tools/command.h"
#include "tools/failure_matrix.h"
#include "tools/report.h"

namespace holdfast {
namespace {

struct FailuresOptions {
  FailureMatrixOptions matrix;
  std::string device = "auto";
  std::string markdown, json;
};

int FailuresMain(const FailuresOptions& options) {
  const absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(options.device);
  if (!device.ok()) return Complain(device.status());
  const absl::StatusOr<FailureMatrix> matrix = RunFailureMatrix(**device, options.matrix);
  if (!matrix.ok()) return Complain(matrix.status());
  const std::string page = FailureMarkdown(*matrix);
  if (!options.json.empty()) {
    if (const absl::Status s = WriteFile(options.json, FailureJson(*matrix)); !s.ok()) {
      return Complain(s);
    }
  }
  if (!options.markdown.empty()) {
    if (const absl::Status s = WriteFile(options.markdown, page); !s.ok()) return Complain(s);
  } else {
    std::fputs(page.c_str(), stdout);
  }
  std::printf("%d failures tried\n%s\n", matrix->tried(),
              matrix->held() ? "PASS" : "FAIL: a failure left something behind");
  return matrix->held() ? kPass : kFail;
}

}  // namespace

Command AddFailuresCommand(CLI::App& parent) {
  static const std::map<std::string, PlantedFailure> plants = {
      {"leak", PlantedFailure::kLeak}, {"lost-bytes", PlantedFailure::kLostBytes}};
  const auto options = std::make_shared<FailuresOptions>();
  CLI::App* const parser = parent.add_subcommand(
      "failures", "fail every device call of sleep and wake in turn, and see what is left");
  parser->add_option("--device", options->device, "auto, host or cuda:N")->capture_default_str();
  parser->add_option("--seed", options->matrix.seed, "of the contents")->capture_default_str();
  parser->add_option("--markdown", options->markdown, "write the page to this file");
  parser->add_option("--json", options->json, "write every cell to this file");
  parser->add_option("--inject", options->matrix.plant, "plant a fault: leak, lost-bytes")
      ->transform(CLI::CheckedTransformer(plants).description(""));
  return {parser, [options] { return FailuresMain(*options); }};
}

}  // namespace holdfast
