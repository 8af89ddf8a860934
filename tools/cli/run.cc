// `holdfast run`: its flags, and where its report goes.
#include <cstdio>
#include <memory>
#include <string>

#include "tools/command.h"
#include "tools/report.h"
#include "tools/run_command.h"

namespace holdfast {
namespace {

void AddRunFlags(CLI::App& run, RunOptions& o) {
  const CLI::AsSizeValue size(false);
  run.add_option("--model", o.model, "folder with config.json and safetensors");
  run.add_option("--synthetic", o.synthetic,
                 "instead of --model: layers of declared backends, "
                 "e.g. mla_sparse:heads=16,layers=2+gated_delta_net");
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
  run.add_option("--utilization", o.utilization,
                 "share of device memory that this process may hold (0.9)");
  run.add_option("--kv-bytes", o.kv_bytes, "instead: what the KV cache gets, e.g. 2GiB")
      ->transform(size);
  run.add_option("--kv-blocks", o.kv_blocks, "instead: its blocks, the null block among them");
  run.add_option("--chunk-bytes", o.chunk_bytes, "largest physical allocation, e.g. 256MiB")
      ->transform(size);
  run.add_option("--host-capacity", o.host_capacity_bytes, "memory of the host device, e.g. 4GiB")
      ->transform(size);
  run.add_option("--host-cap", o.host_cap_bytes, "most pinned host memory for backups")
      ->transform(size);
  run.add_flag("--through-pool", o.through_pool,
               "read the weights into the backing pool: the first sleep copies nothing");
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
      ->transform(CLI::CheckedTransformer(InjectionsByName()).description(""));
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

}  // namespace

Command AddRunCommand(CLI::App& parent) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* const parser =
      parent.add_subcommand("run", "generate, sleep, wake, and prove that nothing changed");
  AddRunFlags(*parser, *options);
  return {parser, [options] { return RunMain(*options); }};
}

}  // namespace holdfast
