// `holdfast bench`: the parent of what measures.
#include <memory>
#include <vector>

#include "tools/command.h"

namespace holdfast {

Command AddBenchCommand(CLI::App& parent) {
  CLI::App* const parser = parent.add_subcommand("bench", "measure");
  parser->require_subcommand(1);
  const auto commands = std::make_shared<std::vector<Command>>();
  commands->push_back(AddBenchSleepCommand(*parser));
  commands->push_back(AddBenchAuditCommand(*parser));
  commands->push_back(AddBenchCaptureCommand(*parser));
  commands->push_back(AddBenchReplayCommand(*parser));
  return {parser, [commands] {
            for (const Command& command : *commands) {
              if (command.parser->parsed()) return command.run();
            }
            return kBadInput;  // unreachable: the parser requires a command
          }};
}

}  // namespace holdfast
