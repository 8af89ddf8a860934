// The command line: `holdfast run` and `holdfast scribble`. Exit status 0 for PASS, 1 for FAIL, 2
// for bad input or a start that failed, with one line on stderr that names the thing.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>

#include "tools/progress.h"
#include "tools/report.h"
#include "tools/run_command.h"
#include "tools/scribble.h"

namespace holdfast {
namespace {

constexpr int kPass = 0, kFail = 1, kBadInput = 2;

int Complain(const std::string& what) {
  ClearProgress();
  std::fprintf(stderr, "holdfast: %s\n", what.c_str());
  return kBadInput;
}
int Complain(const absl::Status& status) { return Complain(std::string(status.message())); }

void AddRunFlags(CLI::App& run, RunOptions& o) {
  const std::map<std::string, Injection> injections = {{"stale-pointer", Injection::kStalePointer},
                                                       {"swap-chunks", Injection::kSwapChunks},
                                                       {"flip-bit", Injection::kFlipBit},
                                                       {"lost-refresh", Injection::kLostRefresh},
                                                       {"early-unmap", Injection::kEarlyUnmap}};
  const CLI::AsSizeValue size(false);
  run.add_option("--model", o.model, "folder with config.json and safetensors")->required();
  run.add_option("--prompt", o.prompts, "text to continue; may be repeated");
  run.add_option("--max-tokens", o.max_tokens, "tokens to generate for each prompt")
      ->capture_default_str();
  run.add_option("--cycles", o.cycles, "sleep-wake cycles: full, selective, full, ...")
      ->capture_default_str();
  run.add_option("--device", o.device, "auto, host or cuda:N")->capture_default_str();
  run.add_option("--dtype", o.dtype, "auto, f32 or bf16")->capture_default_str();
  run.add_option("--temperature", o.temperature, "of the seeded half")->capture_default_str();
  run.add_option("--top-k", o.top_k, "of the seeded half; 0: no limit")->capture_default_str();
  run.add_option("--seed", o.seed, "of the seeded half")->capture_default_str();
  run.add_option("--max-batch", o.max_batch, "sequences decoded together")->capture_default_str();
  run.add_option("--max-prefill-tokens", o.max_prefill_tokens, "tokens of one prefill pass")
      ->capture_default_str();
  run.add_option("--max-sequence", o.max_sequence, "prompt and output together, in tokens")
      ->capture_default_str();
  run.add_option("--utilization", o.utilization, "share of device memory that may be in use")
      ->capture_default_str();
  run.add_option("--chunk-bytes", o.chunk_bytes, "largest physical allocation, e.g. 256MiB")
      ->transform(size);
  run.add_option("--host-capacity", o.host_capacity_bytes, "memory of the host device, e.g. 4GiB")
      ->transform(size);
  run.add_option("--host-cap", o.host_cap_bytes, "most pinned host memory for backups")
      ->transform(size);
  run.add_flag("--deterministic", o.deterministic,
               "equal rows give equal bits in every bucket and batch");
  run.add_flag("!--no-scribble", o.scribble, "no other process writes over the freed pages");
  run.add_option("--dictionary", o.dictionary, "word list, one a line")->capture_default_str();
  run.add_option("--min-dictionary-share", o.min_dictionary_share,
                 "FAIL if fewer of the words are known");
  run.add_option("--json", o.json, "write the report to this file");
  run.add_option("--manifest", o.manifest, "write which graph refers to which span to this file");
  run.add_option("--inject", o.inject,
                 "plant a fault: stale-pointer, swap-chunks, flip-bit, lost-refresh, early-unmap")
      ->transform(CLI::CheckedTransformer(injections).description(""));
}

int RunMain(const RunOptions& options) {
  const absl::StatusOr<RunReport> report = Run(options);
  if (!report.ok()) return Complain(report.status());
  if (!options.json.empty()) {
    if (const absl::Status s = WriteFile(options.json, ReportJson(*report)); !s.ok())
      return Complain(s);
  }
  std::fputs(ReportText(*report).c_str(), stdout);
  return report->passed() ? kPass : kFail;
}

int ScribbleMain(const std::string& device, std::uint64_t bytes) {
  if (const absl::Status s = Scribble(device, bytes); !s.ok()) return Complain(s);
  std::printf("scribbled over %s\n", FormatBytes(bytes).c_str());
  return kPass;
}

int Main(int argc, char** argv) {
  CLI::App app{"holdfast: captured graphs that hold fast while the GPU's memory comes and goes"};
  app.set_version_flag("--version", HOLDFAST_VERSION);
  app.require_subcommand(1);
  RunOptions run_options;
  CLI::App* const run =
      app.add_subcommand("run", "generate, sleep, wake, and prove that nothing changed");
  AddRunFlags(*run, run_options);
  std::string scribble_device = "auto";
  std::uint64_t scribble_bytes = 0;
  CLI::App* const scribble =
      app.add_subcommand("scribble", "take device memory, write over it, give it back");
  scribble->add_option("--device", scribble_device, "auto, host or cuda:N")->capture_default_str();
  scribble->add_option("--bytes", scribble_bytes, "how much, e.g. 1GiB")
      ->required()
      ->transform(CLI::AsSizeValue(false));
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    const bool unknown = app.get_subcommands().empty() && argc > 1;
    return Complain(unknown ? "no such command: '" + std::string(argv[1]) +
                                  "'; there are run and scribble"
                            : error.what());
  } catch (const CLI::ParseError& error) {
    // --help and --version are errors to the parser, and print to stdout.
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    return Complain(error.what());
  }
  return run->parsed() ? RunMain(run_options) : ScribbleMain(scribble_device, scribble_bytes);
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) { return holdfast::Main(argc, argv); }
