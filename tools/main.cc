// The command line. Exit status 0 for PASS, 1 for FAIL, 2 for bad input or a start that failed,
// with one line on stderr that names the thing.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/command.h"

namespace holdfast {
namespace {

// "a, b and c"
std::string NamesOf(const CLI::App& parent) {
  std::string names;
  const std::vector<const CLI::App*> all = parent.get_subcommands({});
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) names += i + 1 == all.size() ? " and " : ", ";
    names += all[i]->get_name();
  }
  return names;
}

// The group of commands below which the parser stopped for want of one: null if all were given.
const CLI::App* MissingBelow(const CLI::App& app) {
  const std::vector<CLI::App*> given = app.get_subcommands();
  if (!given.empty()) return MissingBelow(*given.front());
  return app.get_require_subcommand_min() > 0 ? &app : nullptr;
}

int Main(int argc, char** argv) {
  CLI::App app{"holdfast: captured graphs that hold fast while the GPU's memory comes and goes"};
  app.set_version_flag("--version", HOLDFAST_VERSION);
  app.require_subcommand(1);
  const std::vector<Command> commands = {
      AddRunCommand(app),   AddPlanCommand(app),  AddAuditCommand(app),    AddAuditRunCommand(app),
      AddBenchCommand(app), AddCheckCommand(app), AddFailuresCommand(app), AddScribbleCommand(app),
      AddSizeCommand(app),  AddSoakCommand(app),
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    const CLI::App* const group = MissingBelow(app);
    const std::string last = argc > 1 ? argv[argc - 1] : "";
    if (group == nullptr || last.empty() || last == group->get_name()) {
      return Complain(error.what());
    }
    return Complain("no such command: '" + last + "'; there are " + NamesOf(*group));
  } catch (const CLI::ParseError& error) {
    // --help and --version are errors to the parser, and print to stdout.
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    return Complain(error.what());
  }
  for (const Command& command : commands) {
    if (command.parser->parsed()) return command.run();
  }
  return kBadInput;  // unreachable: the parser requires a command
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) { return holdfast::Main(argc, argv); }
