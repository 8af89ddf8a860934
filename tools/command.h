// How a subcommand joins the command line. Each lives in a file of its own (tools/cli/) and is
// listed once in main.cc.
#ifndef HOLDFAST_TOOLS_COMMAND_H_
#define HOLDFAST_TOOLS_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace holdfast {

// Exit statuses of the program.
inline constexpr int kPass = 0;
inline constexpr int kFail = 1;      // a proof failed
inline constexpr int kBadInput = 2;  // bad input, or a start that failed: nothing was proved

// One line on stderr that names the thing; returns kBadInput.
int Complain(const std::string& what);
int Complain(const absl::Status& status);

struct Command {
  CLI::App* parser = nullptr;
  std::function<int()> run;  // after parsing, if this command was given; returns the exit status
};

// Each adds its subcommand to `parent`, which outlives the command.
Command AddAuditCommand(CLI::App& parent);
Command AddAuditRunCommand(CLI::App& parent);
Command AddBenchCommand(CLI::App& parent);
Command AddCheckCommand(CLI::App& parent);
Command AddFailuresCommand(CLI::App& parent);
Command AddPlanCommand(CLI::App& parent);
Command AddRunCommand(CLI::App& parent);
Command AddScribbleCommand(CLI::App& parent);
Command AddSizeCommand(CLI::App& parent);
Command AddSoakCommand(CLI::App& parent);

// Below `holdfast bench`.
Command AddBenchAuditCommand(CLI::App& parent);
Command AddBenchCaptureCommand(CLI::App& parent);
Command AddBenchReplayCommand(CLI::App& parent);
Command AddBenchSleepCommand(CLI::App& parent);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_COMMAND_H_
