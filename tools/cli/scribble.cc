// `holdfast scribble`: its flags.
#include "testing/scribble.h"

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "device/bytes.h"
#include "tools/command.h"

namespace holdfast {
namespace {

struct ScribbleOptions {
  std::string device = "auto";
  std::uint64_t bytes = 0;
  bool serve = false;
};

int ScribbleMain(const ScribbleOptions& options) {
  if (options.serve) {
    const absl::Status served = testing::ServeNeighbour(options.device, std::cin, std::cout);
    return served.ok() ? kPass : Complain(served);
  }
  if (const absl::Status s = testing::Scribble(options.device, options.bytes); !s.ok())
    return Complain(s);
  std::printf("scribbled over %s\n", FormatBytes(options.bytes).c_str());
  return kPass;
}

}  // namespace

Command AddScribbleCommand(CLI::App& parent) {
  const auto options = std::make_shared<ScribbleOptions>();
  CLI::App* const parser =
      parent.add_subcommand("scribble", "take device memory, write over it, give it back");
  parser->add_option("--device", options->device, "auto, host or cuda:N")->capture_default_str();
  CLI::Option* const serve = parser->add_flag(
      "--serve", options->serve, "take and give back on request: reads commands, one a line");
  parser->add_option("--bytes", options->bytes, "how much, e.g. 1GiB")
      ->transform(CLI::AsSizeValue(false))
      ->excludes(serve);
  parser->callback([parser, options] {
    if (!options->serve && parser->count("--bytes") == 0) {
      throw CLI::RequiredError("--bytes or --serve");
    }
  });
  return {parser, [options] { return ScribbleMain(*options); }};
}

}  // namespace holdfast
