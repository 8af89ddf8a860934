// `holdfast plan`: what a start would take, without starting.
#include "tools/plan.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/plan_report.h"

namespace holdfast {
namespace {

struct PlanArguments {
  PlanOptions options;
  std::vector<std::string> against;  // "max-batch=4": flags that differ, without their dashes
  bool json = false;
};

void AddPlanFlags(CLI::App& plan, PlanOptions& o) {
  const CLI::AsSizeValue size(false);
  plan.add_option("--device", o.device, "auto, host or cuda:N: asked for its capacity only")
      ->capture_default_str();
  plan.add_option("--device-bytes", o.device_bytes, "its memory, e.g. 139GiB: no device is opened")
      ->transform(size);
  plan.add_option("--multiprocessors", o.multiprocessors, "of a device that is not opened")
      ->capture_default_str();
  plan.add_option("--dtype", o.dtype, "auto, f32 or bf16")->capture_default_str();
  plan.add_option("--max-batch", o.max_batch, "sequences decoded together")->capture_default_str();
  plan.add_option("--max-prefill-tokens", o.max_prefill_tokens, "tokens of one prefill pass")
      ->capture_default_str();
  plan.add_option("--max-sequence", o.max_sequence, "prompt and output together, in tokens")
      ->capture_default_str();
  plan.add_option("--draft-tokens", o.draft_tokens, "proposed ahead, for the longest sequence")
      ->capture_default_str();
  plan.add_option("--utilization", o.utilization,
                  "share of device memory that the process may hold (0.9)");
  plan.add_option("--kv-bytes", o.kv_bytes, "instead: what the KV cache gets, e.g. 2GiB")
      ->transform(size);
  plan.add_option("--kv-blocks", o.kv_blocks, "instead: its blocks, the null block among them");
  plan.add_option("--chunk-bytes", o.chunk_bytes, "largest physical allocation, e.g. 256MiB")
      ->transform(size);
  plan.add_flag("--deterministic", o.deterministic, "as for run");
}

// The first configuration with some flags changed. A budget replaces the other's.
PlanOptions Against(const PlanOptions& base, const std::vector<std::string>& changes) {
  PlanOptions other = base;
  std::vector<std::string> arguments;
  for (const std::string& change : changes) {
    const std::string name = change.substr(0, change.find('='));
    if (name == "utilization" || name == "kv-bytes" || name == "kv-blocks") {
      other.utilization.reset();
      other.kv_bytes.reset();
      other.kv_blocks.reset();
    }
    arguments.insert(arguments.begin(), "--" + change);  // the parser takes them from the back
  }
  CLI::App parser;
  AddPlanFlags(parser, other);
  parser.parse(arguments);
  return other;
}

int PlanMain(const PlanArguments& arguments) {
  const absl::StatusOr<StartPlan> plan = PlanModel(arguments.options);
  if (!plan.ok()) return Complain(plan.status());
  if (arguments.against.empty()) {
    const std::string text =
        arguments.json ? StartPlanJson(*plan).dump(2) + "\n" : StartPlanText(*plan);
    std::fputs(text.c_str(), stdout);
    return kPass;
  }
  PlanOptions changed;
  try {
    changed = Against(arguments.options, arguments.against);
  } catch (const CLI::ParseError& error) {
    return Complain("--against: " + std::string(error.what()));
  }
  const absl::StatusOr<StartPlan> against = PlanModel(changed);
  if (!against.ok()) return Complain(Annotate(against.status(), "--against"));
  const std::string text = arguments.json ? nlohmann::json{{"plan", StartPlanJson(*plan)},
                                                           {"against", StartPlanJson(*against)}}
                                                    .dump(2) +
                                                "\n"
                                          : PlanDifferenceText(*plan, *against);
  std::fputs(text.c_str(), stdout);
  return kPass;
}

}  // namespace

Command AddPlanCommand(CLI::App& parent) {
  const auto arguments = std::make_shared<PlanArguments>();
  CLI::App* const parser =
      parent.add_subcommand("plan", "the whole memory budget of a start, without starting");
  parser->add_option("--model", arguments->options.model, "folder with config.json and safetensors")
      ->required();
  AddPlanFlags(*parser, arguments->options);
  parser->add_option("--against", arguments->against,
                     "a second configuration beside it: flags that differ, as max-batch=4 ...");
  parser->add_flag("--json", arguments->json, "print JSON");
  return {parser, [arguments] { return PlanMain(*arguments); }};
}

}  // namespace holdfast
