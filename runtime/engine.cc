#include "runtime/engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "device/error.h"
#include "runtime/kv_groups.h"

namespace holdfast {
namespace {

absl::Status BadOption(const std::string& name, const std::string& why) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name}, why);
}

}  // namespace

const char* EngineStateName(EngineState state) {
  switch (state) {
    case EngineState::kLoading: return "loading";
    case EngineState::kProfiling: return "profiling";
    case EngineState::kPlanned: return "planned";
    case EngineState::kLocked: return "locked";
    case EngineState::kServing: return "serving";
    case EngineState::kDraining: return "draining";
    case EngineState::kAsleep: return "asleep";
  }
  return "?";
}

Engine::Engine(Device& device, std::unique_ptr<Model> model, EngineOptions options)
    : device_(device), model_(std::move(model)), options_(std::move(options)) {}

Engine::~Engine() {
  graphs_.reset();
  lane_.reset();
  workspaces_.reset();
  residency_.reset();
  arena_.reset();
  // Errors here have nobody to go to; the call table shows an imbalance.
  if (foreign_chunk_) {
    device_.Unmap(foreign_).IgnoreError();
    device_.ReleaseChunk(foreign_chunk_).IgnoreError();
    device_.FreeAddress(foreign_).IgnoreError();
  }
}

void Engine::Enter(EngineState state, const std::string& stage) {
  state_.store(state);
  if (options_.on_stage) options_.on_stage(stage);
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(Device& device, std::unique_ptr<Model> model,
                                                       EngineOptions options) {
  std::unique_ptr<Engine> engine(new Engine(device, std::move(model), std::move(options)));
  HOLDFAST_RETURN_IF_ERROR(engine->CheckOptions());
  engine->Enter(EngineState::kLoading, "loading weights");
  engine->ledger_ = std::make_unique<Ledger>(device);
  HOLDFAST_RETURN_IF_ERROR(engine->ledger_->SeparateLocalMemory(kContextOwner));
  HOLDFAST_ASSIGN_OR_RETURN(OpenProfile profile, OpenProfile::Begin(device, engine->counting()));
  // Streams are the context's.
  HOLDFAST_RETURN_IF_ERROR(engine->Measured(kContextOwner, [&] { return engine->MakeArena(); }));
  // Pages are counted exactly; what else loading takes is code.
  HOLDFAST_RETURN_IF_ERROR(engine->Measured(kModulesOwner, [&] {
    return engine->model_->Load(
        *engine->arena_,
        {.through = engine->options_.load_through_pool ? engine->residency_.get() : nullptr,
         .progress = engine->options_.on_load});
  }));
  HOLDFAST_RETURN_IF_ERROR(engine->ReserveSpans());
  engine->Enter(EngineState::kProfiling, "profiling every bucket");
  HOLDFAST_RETURN_IF_ERROR(engine->Profile(std::move(profile)));
  engine->Enter(EngineState::kPlanned, "capturing every bucket");
  HOLDFAST_RETURN_IF_ERROR(engine->CaptureAndLock());
  engine->Enter(EngineState::kLocked, "sizing the KV cache");
  HOLDFAST_RETURN_IF_ERROR(engine->SizeCache());
  engine->Enter(EngineState::kServing, "serving");
  return engine;
}

absl::Status Engine::Measured(const char* owner, const std::function<absl::Status()>& part) {
  const LedgerEvent event = ledger_->Measure(owner);
  return part();
}

absl::Status Engine::CheckOptions() {
  if (options_.max_batch < 1) return BadOption("max_batch", "must be at least 1");
  if (options_.max_prefill_tokens < 1) return BadOption("max_prefill_tokens", "must be at least 1");
  if (options_.max_sequence < 2) return BadOption("max_sequence", "must be at least 2");
  if (options_.draft_tokens < 0) return BadOption("draft_tokens", "must not be negative");
  if (options_.micro_batches < 1) return BadOption("micro_batches", "must be at least 1");
  HOLDFAST_RETURN_IF_ERROR(CheckKvBudget(options_.kv_budget()));
  options_.max_sequence = std::min(options_.max_sequence, model_->limits().max_position);
  const KvSpec kv = model_->kv();
  tables_ = kv.groups.groups.empty()
                ? KvTables::OfTokens(kv.page_tokens, options_.max_sequence + options_.draft_tokens)
                : KvTables(kv.groups, kv.longest);
  table_stride_ = tables_.stride();
  kv_plan_.page_tokens = kv.page_tokens;
  kv_plan_.page_bytes = kv.page_bytes();
  kv_plan_.needed_pages = table_stride_ + static_cast<std::int32_t>(kReservedBlocks);
  // The largest cache that can be used: every sequence of a full batch at full length, and the null
  // page. Or what the user insists on.
  std::int64_t most = std::int64_t{options_.max_batch} * table_stride_ + kReservedBlocks;
  const KvBudget wanted = options_.kv_budget();
  if (const auto* blocks = std::get_if<CacheBlocks>(&wanted)) most = std::max(most, blocks->blocks);
  if (most > std::numeric_limits<std::int32_t>::max()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = "max_batch",
                      .need = static_cast<std::uint64_t>(most)},
                     "more pages than a block table counts");
  }
  kv_plan_.most_pages = static_cast<std::int32_t>(most);
  return absl::OkStatus();
}

BatchShape Engine::ShapeOf(const GraphKey& key) const {
  return {.rows = key.size,
          .sequences = std::min(key.size, options_.max_batch),
          .table_stride = table_stride_,
          .vocab = model_->limits().vocab};
}

}  // namespace holdfast
