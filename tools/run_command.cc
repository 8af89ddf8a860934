#include "tools/run_command.h"

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graphs/manifest.h"
#include "tools/progress.h"
#include "tools/prompts.h"
#include "tools/proofs.h"
#include "tools/run_model.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

absl::Status BadFlag(const std::string& flag, const std::string& why) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = flag}, why);
}

absl::StatusOr<DType> ChooseType(const std::string& name, bool is_cuda) {
  if (name == "auto") return is_cuda ? DType::kBF16 : DType::kF32;
  if (name == "f32") return DType::kF32;
  if (name == "bf16") return DType::kBF16;
  return BadFlag("--dtype", absl::StrCat("'", name, "' is none of auto, f32, bf16"));
}

absl::Status CheckOptions(const RunOptions& options) {
  if (options.cycles < 1) return BadFlag("--cycles", "must be at least 1");
  if (options.max_tokens < 1) return BadFlag("--max-tokens", "must be at least 1");
  for (const std::string& prompt : options.prompts) {
    if (prompt.empty()) return BadFlag("--prompt", "is empty");
    const std::uint64_t length = prompt.size() + static_cast<std::uint64_t>(options.max_tokens);
    if (length > static_cast<std::uint64_t>(options.max_sequence)) {
      return MakeError({.kind = ErrorKind::kInvalidArgument,
                        .object = "--prompt",
                        .need = length,
                        .have = static_cast<std::uint64_t>(options.max_sequence)},
                       "prompt and output are longer than --max-sequence, in tokens");
    }
  }
  return absl::OkStatus();
}

EngineOptions MakeEngineOptions(const RunOptions& options, const KvBudget& budget,
                                RunReport& report) {
  EngineOptions engine{.max_batch = options.max_batch,
                       .max_prefill_tokens = options.max_prefill_tokens,
                       .max_sequence = options.max_sequence,
                       .decode_buckets = {},
                       .prefill_buckets = {},
                       .chunk_bytes = options.chunk_bytes,
                       .residency = {.host_cap_bytes = options.host_cap_bytes},
                       .load_through_pool = options.through_pool,
                       .deterministic = options.deterministic,
                       .on_stage = {},
                       .on_load = ShowFraction,
                       .plant_stale_pointer = options.inject == Injection::kStalePointer};
  engine.set_kv_budget(budget);
  // Each stage lasts until the next begins.
  engine.on_stage = [&report, last = std::string(),
                     since = Clock::now()](const std::string& stage) mutable {
    if (!last.empty()) report.seconds[last] = SecondsSince(since);
    last = stage;
    since = Clock::now();
    ShowStage(stage);
  };
  return engine;
}

absl::Status DescribeEngine(Engine& engine, RunReport& report) {
  report.tags = engine.arena().bytes_by_tag();
  report.kv = engine.kv_plan();
  report.scratch_bytes = engine.graphs().scratch_bytes();
  report.scratch_sum_bytes = engine.graphs().scratch_sum_bytes();
  report.plan_ratio = engine.graphs().plan_ratio();
  HOLDFAST_ASSIGN_OR_RETURN(report.ledger, engine.Memory());
  PutMeasured(report.ledger, report.plan);
  report.base_candidate = engine.arena().base_candidate();
  report.arena_base = absl::StrFormat("0x%x", engine.arena().window().base.value);
  return absl::OkStatus();
}

void DescribeGraphs(Engine& engine, RunReport& report) {
  report.graphs.clear();
  for (const Graph* graph : engine.graphs().graphs()) {
    report.graphs.push_back({.name = graph->name(),
                             .nodes = graph->manifest().nodes,
                             .pointers = graph->manifest().audit.count_by_class(),
                             .replays = graph->replays()});
  }
}

// Full, selective, full, selective, ...
std::vector<std::string> TagsOfCycle(Engine& engine, std::int32_t cycle) {
  if (cycle % 2 == 1) return {kCacheTag, kWorkspaceTag};
  return engine.arena().tags();
}

void CountText(const RunOptions& options, const PromptSet& prompts, const Outputs& greedy,
               const Outputs& seeded, RunReport& report) {
  const absl::StatusOr<Dictionary> dictionary = Dictionary::Load(options.dictionary);
  report.dictionary_found = dictionary.ok();
  for (const Outputs* outputs : {&greedy, &seeded}) {
    for (const std::vector<Completion>& batch : *outputs) {
      for (const Completion& completion : batch) {
        report.tokens += completion.tokens.size();
        if (dictionary.ok()) dictionary->Count(Detokenize(completion.tokens), report.dictionary);
      }
    }
  }
  report.prompts = prompts.count();
  report.sample_prompt = Detokenize(prompts.batches[0][0].prompt);
  report.sample_text = Detokenize(greedy[0][0].tokens);
}

Failure CheckText(const RunOptions& options, const RunReport& report) {
  if (options.min_dictionary_share <= 0) return {};
  if (!report.dictionary_found)
    return {"dictionary", absl::StrCat("no word list at ", options.dictionary)};
  if (report.dictionary.value() >= options.min_dictionary_share) return {};
  return {"dictionary",
          absl::StrFormat("%.1f %% of the words are known, %.1f %% are wanted",
                          100 * report.dictionary.value(), 100 * options.min_dictionary_share)};
}

// Golden outputs, then the cycles. Returns the first proof that does not hold.
absl::StatusOr<Failure> Prove(Engine& engine, const RunOptions& options, RunReport& report) {
  const std::int32_t longest = engine.options().max_sequence;
  const PromptSet greedy = MakePrompts(options.prompts, options.max_tokens, longest, {});
  const PromptSet seeded = MakePrompts(
      options.prompts, options.max_tokens, longest,
      {.temperature = options.temperature, .top_k = options.top_k, .seed = options.seed});
  ShowStage("generating, greedy");
  HOLDFAST_ASSIGN_OR_RETURN(const Outputs golden_greedy, GenerateAll(engine, greedy));
  ShowStage("generating, seeded");
  HOLDFAST_ASSIGN_OR_RETURN(const Outputs golden_seeded, GenerateAll(engine, seeded));
  CountText(options, greedy, golden_greedy, golden_seeded, report);
  if (Failure f = CheckText(options, report); f.failed()) return f;

  engine.residency().PlantFaults(FaultsOf(options.inject));
  for (std::int32_t i = 0; i < options.cycles; ++i) {
    CycleLine cycle{.tags = TagsOfCycle(engine, i), .sleep = {}, .wake = {}};
    if (Failure f = SleepAndWake(engine, options, cycle); f.failed()) return f;
    for (const auto& [prompts, golden] :
         {std::pair{&greedy, &golden_greedy}, {&seeded, &golden_seeded}}) {
      ShowStage(absl::StrCat("cycle ", i + 1, ": generating again"));
      const absl::StatusOr<Outputs> now = GenerateAll(engine, *prompts);
      if (!now.ok()) return Failure{ReasonOf(now.status()), std::string(now.status().message())};
      if (Failure f = CompareOutputs(*golden, *now); f.failed()) return f;
      cycle.prompts_compared += prompts->count();
    }
    // Every byte that a synthetic stack verified, in all steps so far.
    if (absl::Status s = CheckSynthetic(engine); !s.ok()) {
      return Failure{"synthetic", std::string(s.message())};
    }
    report.cycles.push_back(std::move(cycle));
  }
  return Failure{};
}

}  // namespace

const char* InjectionName(Injection injection) {
  switch (injection) {
    case Injection::kNone: return "none";
    case Injection::kStalePointer: return "stale-pointer";
    case Injection::kSwapChunks: return "swap-chunks";
    case Injection::kFlipBit: return "flip-bit";
    case Injection::kLostRefresh: return "lost-refresh";
    case Injection::kEarlyUnmap: return "early-unmap";
  }
  return "?";
}

std::map<std::string, Injection> InjectionsByName() {
  std::map<std::string, Injection> by_name;
  for (const Injection injection :
       {Injection::kStalePointer, Injection::kSwapChunks, Injection::kFlipBit,
        Injection::kLostRefresh, Injection::kEarlyUnmap}) {
    by_name[InjectionName(injection)] = injection;
  }
  return by_name;
}

absl::StatusOr<RunReport> Run(const RunOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(CheckOptions(options));
  RunReport report{.options = options, .version = HOLDFAST_VERSION};
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::unique_ptr<Device> device,
      OpenDevice(options.device, {.host_capacity_bytes = options.host_capacity_bytes}));
  report.device = device->info().name;
  report.driver = device->info().driver;
  HOLDFAST_ASSIGN_OR_RETURN(const DType type, ChooseType(options.dtype, device->info().is_cuda));
  report.dtype = DTypeName(type);

  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                            OpenRunModel(options, device->info(), type));
  HOLDFAST_ASSIGN_OR_RETURN(
      const KvBudget budget,
      ChooseKvBudget(options.utilization, options.kv_bytes, options.kv_blocks));
  EngineOptions engine_options = MakeEngineOptions(options, budget, report);
  HOLDFAST_ASSIGN_OR_RETURN(engine_options.workspace_override,
                            ReadWorkspaceOverride(ProcessEnvironment()));
  // The same model once more: a plan reserves its spans in an arena of its own.
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<Model> planned,
                            OpenRunModel(options, device->info(), type));
  HOLDFAST_ASSIGN_OR_RETURN(report.plan,
                            PlanStart(device->info(), std::move(planned), engine_options));
  // Told by the engine alone: the plan makes a workspace, too.
  engine_options.on_setting = [&report](const EffectiveSetting& setting) {
    report.settings.push_back(setting);
  };
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(*device, std::move(model), engine_options);
  if (IsErrorKind(engine.status(), ErrorKind::kForeignPointer)) {
    report.failure =
        Failure{ReasonOf(engine.status()), std::string(engine.status().message())}.Text();
    return report;
  }
  if (!engine.ok()) return engine.status();
  HOLDFAST_RETURN_IF_ERROR(DescribeEngine(**engine, report));
  HOLDFAST_ASSIGN_OR_RETURN(report.synthetic, SyntheticText(**engine));
  absl::StatusOr<Failure> failure = Prove(**engine, options, report);
  if (!failure.ok()) return failure.status();
  if (failure->failed()) report.failure = failure->Text();
  DescribeGraphs(**engine, report);
  if (!options.manifest.empty()) {
    std::vector<const GraphManifest*> manifests;
    for (const Graph* graph : (*engine)->graphs().graphs()) manifests.push_back(&graph->manifest());
    HOLDFAST_RETURN_IF_ERROR(
        WriteFile(options.manifest, ManifestJson((*engine)->arena(), manifests)));
  }
  ClearProgress();
  return report;
}

}  // namespace holdfast
