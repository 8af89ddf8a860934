#include "tools/run_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "device/error.h"
#include "runtime/mla_model.h"
#include "runtime/path_saving.h"
#include "runtime/synthetic_stack.h"

namespace holdfast {
namespace {

constexpr std::int32_t kByteVocabulary = 256;

const SyntheticStack* StackOf(Engine& engine) {
  return dynamic_cast<const SyntheticStack*>(&engine.model());
}

absl::StatusOr<std::unique_ptr<Model>> MakeStack(const RunOptions& options,
                                                 const DeviceInfo& device) {
  SyntheticLimits limits{
      .max_batched_tokens = std::max(options.max_prefill_tokens, options.max_batch),
      .max_sequences = options.max_batch,
      .max_model_len = options.max_sequence};
  if (device.is_cuda) limits.sms = device.multiprocessors;
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<SyntheticLayer> layers,
                            ParseSyntheticSpec(options.synthetic, limits));
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<SyntheticStack> stack,
                            SyntheticStack::Create(layers, {.vocab = kByteVocabulary}));
  return std::unique_ptr<Model>(std::move(stack));
}

// Pages of the workspace's slots, and what lies in them beside the layers' requests.
PathBudget BudgetOf(Engine& engine, const SyntheticStack& stack) {
  std::uint64_t pages = 0, beside = 0, largest = 0;
  for (const TagBytes& tag : engine.arena().bytes_by_tag()) {
    if (tag.tag == kWorkspaceTag && tag.role == Role::kScratch) pages += tag.committed_bytes;
  }
  for (const SpanInfo& span : engine.arena().spans()) {
    if (span.spec.tag != kWorkspaceTag || span.spec.role != Role::kScratch) continue;
    beside += AlignUp(span.range.bytes, kScratchAlignment);
  }
  for (const DeclaredLayer& layer : stack.layers()) {
    largest = std::max(largest, layer.packed_bytes());
  }
  const KvPlan& kv = engine.kv_plan();
  return {.bytes = std::max(kv.budget_bytes, kv.used_bytes),
          .other_bytes = kv.used_bytes - std::min(pages, kv.used_bytes),
          .beside_bytes = beside - std::min(largest, beside),
          .granularity = engine.device().info().granularity};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> OpenRunModel(const RunOptions& options,
                                                    const DeviceInfo& device, DType type) {
  if (options.model.empty() == options.synthetic.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "--model"},
                     "give either --model DIR or --synthetic SPEC");
  }
  if (!options.synthetic.empty()) return MakeStack(options, device);
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<MlaModel> model, MlaModel::Open(options.model, type));
  if (model->limits().vocab != kByteVocabulary) {
    return MakeError({.kind = ErrorKind::kUnsupported,
                      .object = options.model,
                      .need = kByteVocabulary,
                      .have = static_cast<std::uint64_t>(model->limits().vocab)},
                     "text prompts need a byte-level model, with a vocabulary of 256");
  }
  return std::unique_ptr<Model>(std::move(model));
}

absl::StatusOr<std::string> SyntheticText(Engine& engine) {
  const SyntheticStack* const stack = StackOf(engine);
  if (stack == nullptr) return std::string();
  std::vector<SyntheticLayer> layers;
  for (const DeclaredLayer& layer : stack->layers()) {
    layers.push_back({layer.backend(), layer.config()});
  }
  HOLDFAST_ASSIGN_OR_RETURN(const PathSaving saving,
                            SavingOfPaths(layers, BudgetOf(engine, *stack)));
  const ProfilingDecision profiling = stack->profiling();
  return absl::StrCat("profiling: ", profiling.runs ? "runs" : "off", ": ", profiling.why, "\n",
                      PathSavingText(saving));
}

absl::Status CheckSynthetic(Engine& engine) {
  const SyntheticStack* const stack = StackOf(engine);
  if (stack == nullptr) return absl::OkStatus();
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<SyntheticFinding> findings,
                            stack->Findings(engine.lane().stream()));
  if (findings.empty()) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kCorrupted, .object = findings[0].buffer},
                   absl::StrCat(findings[0].differing, " words were not as written, the first at ",
                                findings[0].first, "; ", findings.size(), " buffers in all"));
}

}  // namespace holdfast
