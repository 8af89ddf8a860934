// `holdfast failures`: its flags, and where its page goes.
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "testing/failure_matrix.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/report.h"

namespace holdfast {
namespace {

struct FailuresOptions {
  testing::FailureMatrixOptions matrix;
  std::string device = "auto";
  std::string markdown, json;
};

int FailuresMain(const FailuresOptions& options) {
  const absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(options.device);
  if (!device.ok()) return Complain(device.status());
  const absl::StatusOr<testing::FailureMatrix> matrix =
      testing::RunFailureMatrix(**device, options.matrix);
  ClearProgress();
  if (!matrix.ok()) return Complain(matrix.status());
  const std::string page = testing::FailureMarkdown(*matrix);
  if (!options.json.empty()) {
    if (const absl::Status s = WriteFile(options.json, testing::FailureJson(*matrix)); !s.ok()) {
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
  static const std::map<std::string, testing::PlantedFailure> plants = {
      {"leak", testing::PlantedFailure::kLeak},
      {"lost-bytes", testing::PlantedFailure::kLostBytes}};
  const auto options = std::make_shared<FailuresOptions>();
  options->matrix.on_stage = ShowStage;
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
