// `holdfast size`: what a kernel needs, from configuration alone.
#include "tools/size.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tools/command.h"

namespace holdfast {
namespace {

struct SizeOptions {
  std::string rule;
  std::vector<std::string> arguments;
  bool json = false, help = false;
};

int PrintHelp(const CLI::App& parser, const SizeOptions& options) {
  if (options.rule.empty()) {
    std::printf("%s\nRULEs, each with --help RULE:\n%s", parser.help("holdfast").c_str(),
                SizeRuleList().c_str());
    return kPass;
  }
  const absl::StatusOr<std::string> help = SizeRuleHelp(options.rule);
  if (!help.ok()) return Complain(help.status());
  std::fputs(help->c_str(), stdout);
  return kPass;
}

int SizeMain(const CLI::App& parser, const SizeOptions& options) {
  if (options.help) return PrintHelp(parser, options);
  if (options.rule.empty()) return Complain("size: no RULE given; holdfast size --help lists them");
  const absl::StatusOr<SizeReport> report = SizeRule(options.rule, options.arguments);
  if (!report.ok()) return Complain(report.status());
  std::fputs((options.json ? SizeJson(*report) : SizeText(*report)).c_str(), stdout);
  return kPass;
}

}  // namespace

Command AddSizeCommand(CLI::App& parent) {
  const auto options = std::make_shared<SizeOptions>();
  CLI::App* const parser =
      parent.add_subcommand("size", "bytes of scratch, cache pages and plans, from configuration");
  parser->set_help_flag();  // ours knows the rules
  parser->add_flag("-h,--help", options->help, "this text, or what is behind one RULE");
  parser->add_flag("--json", options->json, "print JSON");
  parser->add_option("RULE", options->rule, "name of a rule");
  parser->add_option("KEYS", options->arguments, "key=value of the rule, any number");
  return {parser, [parser, options] { return SizeMain(*parser, *options); }};
}

}  // namespace holdfast
