#include "runtime/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/chunk_sizes.h"
#include "device/bytes.h"

namespace holdfast {
namespace {

absl::StatusOr<BucketList> PowersOfTwo(int from, int limit) {
  std::vector<int> sizes;
  for (int size = std::min(from, limit); size < limit; size *= 2) sizes.push_back(size);
  sizes.push_back(limit);
  return BucketList::Of(std::move(sizes), limit);
}

absl::Status BadOption(const std::string& name, const std::string& why) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name}, why);
}

// Every row writes to and attends over the null page: a pass that runs all kernels on valid inputs
// and leaves nothing behind that anybody reads.
void FillForWarmUp(const InputBlock& block, std::int32_t page_tokens) {
  block.FillWithPads();
  for (std::int32_t row = 0; row < block.shape.rows; ++row) {
    block.tokens[row] = 0;
    block.slots[row] = row % page_tokens;
    block.row_sequence[row] = row % block.shape.sequences;
    block.row_kv_length[row] =
        std::min(block.shape.rows, page_tokens);  // only slots this pass writes
  }
  for (std::int32_t s = 0; s < block.shape.sequences; ++s) {
    block.logits_row[s] = std::min(s, block.shape.rows - 1);
    block.sampling[s] = {.temperature = 1, .active = 1};
  }
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
  HOLDFAST_RETURN_IF_ERROR(engine->Profile());
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
  if (!(options_.utilization > 0 && options_.utilization <= 1)) {
    return BadOption("utilization", "must be above 0 and at most 1");
  }
  options_.max_sequence = std::min(options_.max_sequence, model_->limits().max_position);
  const KvSpec kv = model_->kv();
  tables_ = kv.groups.groups.empty()
                ? KvTables::OfTokens(kv.page_tokens, options_.max_sequence)
                : KvTables(kv.groups, kv.longest);
  table_stride_ = tables_.stride();
  kv_plan_.page_tokens = kv.page_tokens;
  kv_plan_.page_bytes = kv.page_bytes();
  // The largest cache that can be used: every sequence of a full batch at full length, and the null
  // page.
  kv_plan_.most_pages = options_.max_batch * table_stride_ + 1;
  return absl::OkStatus();
}

BatchShape Engine::ShapeOf(const GraphKey& key) const {
  return {.rows = key.size,
          .sequences = std::min(key.size, options_.max_batch),
          .table_stride = table_stride_,
          .vocab = model_->limits().vocab};
}

absl::Status Engine::MakeArena() {
  std::vector<GroupSpec> groups = model_->groups();
  std::uint64_t workspace = 0;
  for (const GraphKey& key : {GraphKey{Phase::kPrefill, options_.max_prefill_tokens, 1, ""},
                              GraphKey{Phase::kDecode, options_.max_batch, 1, ""}}) {
    const BatchShape shape = ShapeOf(key);
    workspace = std::max(workspace, model_->ScratchBound(shape) + InputBlock(shape).bytes +
                                        OutputBlock(shape).bytes + 4 * kScratchAlignment);
  }
  groups.push_back({.tag = kWorkspaceTag, .role = Role::kScratch, .extent_bytes = workspace * 2});
  groups.push_back({.tag = kStateTag, .role = Role::kMutable, .extent_bytes = 64 * kKiB});
  HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t cache,
                            CheckedMultiply(static_cast<std::uint64_t>(kv_plan_.most_pages),
                                            kv_plan_.page_bytes, "KV cache"));
  groups.push_back({.tag = kCacheTag, .role = Role::kCache, .extent_bytes = cache});
  for (GroupSpec& group : groups) {
    group.chunk_bytes = options_.chunk_bytes;
    if (group.role == Role::kCache) group.chunk_bytes *= kDroppedChunkFactor;
  }
  HOLDFAST_ASSIGN_OR_RETURN(
      arena_, Arena::Create(device_, {.name = "engine", .groups = groups, .candidate_bases = {}}));
  HOLDFAST_ASSIGN_OR_RETURN(residency_, Residency::Create(*arena_, options_.residency));
  HOLDFAST_ASSIGN_OR_RETURN(lane_, Lane::Create(*arena_, "lane0"));
  return absl::OkStatus();
}

absl::Status Engine::ReserveSpans() {
  std::uint64_t input = 0, output = 0;
  for (const GraphKey& key : {GraphKey{Phase::kPrefill, options_.max_prefill_tokens, 1, ""},
                              GraphKey{Phase::kDecode, options_.max_batch, 1, ""}}) {
    input = std::max(input, InputBlock(ShapeOf(key)).bytes);
    output = std::max(output, OutputBlock(ShapeOf(key)).bytes);
  }
  const auto reserve = [this](SpanId& id, const char* name, const char* tag, Role role,
                              std::uint64_t bytes) -> absl::Status {
    HOLDFAST_ASSIGN_OR_RETURN(id, arena_->Reserve({.name = name,
                                                   .tag = tag,
                                                   .role = role,
                                                   .bytes = bytes,
                                                   .owner = "engine",
                                                   .refill = nullptr}));
    return absl::OkStatus();
  };
  HOLDFAST_RETURN_IF_ERROR(reserve(input_, "lane0.input", kWorkspaceTag, Role::kScratch, input));
  HOLDFAST_RETURN_IF_ERROR(reserve(output_, "lane0.output", kWorkspaceTag, Role::kScratch, output));
  HOLDFAST_RETURN_IF_ERROR(
      reserve(step_count_, "lane0.step_count", kStateTag, Role::kMutable, sizeof(std::uint64_t)));
  HOLDFAST_RETURN_IF_ERROR(
      reserve(cache_, "kv", kCacheTag, Role::kCache,
              static_cast<std::uint64_t>(kv_plan_.most_pages) * kv_plan_.page_bytes));
  HOLDFAST_RETURN_IF_ERROR(arena_->CommitTag(kStateTag));
  HOLDFAST_ASSIGN_OR_RETURN(host_input_, arena_->AddHostSpan("lane0.host_input", input));
  HOLDFAST_ASSIGN_OR_RETURN(host_output_, arena_->AddHostSpan("lane0.host_output", output));
  if (options_.plant_stale_pointer) HOLDFAST_RETURN_IF_ERROR(PlantForeignMemory());
  return absl::OkStatus();
}

absl::Status Engine::PlantForeignMemory() {
  const std::uint64_t bytes = device_.info().granularity;
  HOLDFAST_ASSIGN_OR_RETURN(foreign_, device_.ReserveAddress(bytes, {}));
  HOLDFAST_ASSIGN_OR_RETURN(foreign_chunk_, device_.CreateChunk(bytes));
  HOLDFAST_RETURN_IF_ERROR(device_.Map(foreign_.base, bytes, foreign_chunk_));
  return device_.SetAccess(foreign_, Access::kReadWrite);
}

absl::StatusOr<Step> Engine::MakeStep(const GraphKey& key) {
  const BatchShape shape = ShapeOf(key);
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<ModelPass> pass,
                            model_->PlanPass(shape, options_.deterministic));
  // std::function wants copies; the pass is shared by them.
  return Step([this, shape, pass = std::shared_ptr<ModelPass>(std::move(pass))](
                  StepContext& step) -> absl::Status {
    const InputBlock input(shape, step.Resolve(input_).value);
    const OutputBlock output(shape, step.Resolve(output_).value);
    HOLDFAST_RETURN_IF_ERROR(
        step.CopyToDevice(step.Resolve(input_), host_input_->buffer.data(), input.bytes));
    HOLDFAST_RETURN_IF_ERROR(pass->Enqueue(step, input, output, cache_));
    const DeviceAddress counter = foreign_chunk_ ? foreign_.base : step.Resolve(step_count_);
    const SampleParams sample{.logits = output.logits,
                              .rows = input.sampling,
                              .tokens = output.tokens,
                              .step_count = counter.As<std::uint64_t>(),
                              .count = shape.sequences,
                              .vocab = shape.vocab};
    HOLDFAST_RETURN_IF_ERROR(step.Launch(SampleOp(), SampleShape(sample), sample));
    return step.CopyToHost(host_output_->buffer.data(), step.Resolve(output_), output.bytes);
  });
}

absl::Status Engine::Profile() {
  const auto buckets = [](const std::vector<int>& own, int limit, bool prefill) {
    if (!own.empty()) return BucketList::Of(own, limit);
    return prefill ? PowersOfTwo(16, limit) : BucketList::Default(limit);
  };
  HOLDFAST_ASSIGN_OR_RETURN(BucketList prefill,
                            buckets(options_.prefill_buckets, options_.max_prefill_tokens, true));
  HOLDFAST_ASSIGN_OR_RETURN(BucketList decode,
                            buckets(options_.decode_buckets, options_.max_batch, false));
  // A pass is never cut to a smaller size than its largest bucket.
  options_.max_prefill_tokens = prefill.largest();
  options_.max_batch = decode.largest();

  graphs_ =
      std::make_unique<GraphSet>(*lane_, [this](const GraphKey& key) { return MakeStep(key); });
  HOLDFAST_RETURN_IF_ERROR(graphs_->AddPhase(Phase::kPrefill, std::move(prefill)));
  HOLDFAST_RETURN_IF_ERROR(graphs_->AddPhase(Phase::kDecode, std::move(decode)));
  // Plans every pass, and with them the matrix products.
  HOLDFAST_RETURN_IF_ERROR(Measured(kLibrariesOwner, [this] { return graphs_->Measure(); }));
  HOLDFAST_ASSIGN_OR_RETURN(workspace_, arena_->Reserve({.name = "lane0.workspace",
                                                         .tag = kWorkspaceTag,
                                                         .role = Role::kScratch,
                                                         .bytes = graphs_->scratch_bytes(),
                                                         .owner = "engine",
                                                         .refill = nullptr}));
  HOLDFAST_RETURN_IF_ERROR(arena_->CommitTag(kWorkspaceTag));
  HOLDFAST_RETURN_IF_ERROR(arena_->Commit(cache_, kv_plan_.page_bytes));  // the null page only
  // The input block of each bucket has a layout of its own: filled anew before each run.
  HOLDFAST_RETURN_IF_ERROR(Measured(kModulesOwner, [this] {
    return graphs_->WarmUp(workspace_, [this](const GraphKey& key) {
      FillForWarmUp(
          InputBlock(ShapeOf(key), reinterpret_cast<std::uint64_t>(host_input_->buffer.data())),
          kv_plan_.page_tokens);
    });
  }));
  // Profiling leaves no trace: the counter counts from the first replay.
  HOLDFAST_RETURN_IF_ERROR(
      device_.Fill(lane_->stream(), arena_->range(step_count_).base, 0, sizeof(std::uint64_t)));
  HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
  return ledger_->SeparateLocalMemory(kModulesOwner);
}

absl::Status Engine::CaptureAndLock() {
  HOLDFAST_RETURN_IF_ERROR(
      Measured(kExecutablesOwner, [this] { return graphs_->Capture(workspace_); }));
  HOLDFAST_RETURN_IF_ERROR(ledger_->SeparateLocalMemory(kExecutablesOwner));
  arena_->Lock();
  return absl::OkStatus();
}

absl::Status Engine::SizeCache() {
  HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse memory, device_.Memory());
  const std::uint64_t capacity = device_.info().capacity_bytes;
  kv_plan_.budget_bytes =
      static_cast<std::uint64_t>(static_cast<double>(capacity) * options_.utilization);
  kv_plan_.used_bytes = capacity - std::min(capacity, memory.free_bytes);
  const std::uint64_t left =
      kv_plan_.budget_bytes > kv_plan_.used_bytes ? kv_plan_.budget_bytes - kv_plan_.used_bytes : 0;
  // The null page's granules are in use already; the last granule of the cache may be partly
  // filled.
  const std::uint64_t granularity = device_.info().granularity;
  const std::uint64_t committed = AlignUp(kv_plan_.page_bytes, granularity);
  const std::uint64_t fits = AlignDown(left, granularity) + committed;
  const std::uint64_t pages = std::min<std::uint64_t>(
      fits / kv_plan_.page_bytes, static_cast<std::uint64_t>(kv_plan_.most_pages));
  const auto least =
      static_cast<std::uint64_t>(table_stride_) + 1;  // one longest sequence, and the null page
  if (pages < least) {
    return MakeError({.kind = ErrorKind::kOutOfMemory,
                      .object = "KV cache",
                      .need = least * kv_plan_.page_bytes,
                      .have = fits},
                     absl::StrCat("one sequence of ", options_.max_sequence, " tokens needs ",
                                  least, " pages; the budget leaves room for ", pages, ", ",
                                  least - pages, " are missing"));
  }
  kv_plan_.pages = static_cast<std::int32_t>(pages);
  HOLDFAST_RETURN_IF_ERROR(arena_->Commit(cache_, pages * kv_plan_.page_bytes));
  pages_ = KvPages(kv_plan_.pages);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Completion>> Engine::Generate(
    const std::vector<GenerateRequest>& requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const GenerateRequest& request = requests[i];
    const std::string name = absl::StrCat("request ", i);
    if (request.prompt.empty()) return BadOption(name, "the prompt is empty");
    if (request.max_tokens < 1) return BadOption(name, "max_tokens must be at least 1");
    const std::uint64_t length =
        request.prompt.size() + static_cast<std::uint64_t>(request.max_tokens);
    if (length > static_cast<std::uint64_t>(options_.max_sequence)) {
      return MakeError({.kind = ErrorKind::kInvalidArgument,
                        .object = name,
                        .need = length,
                        .have = static_cast<std::uint64_t>(options_.max_sequence)},
                       "prompt and output are longer than the longest sequence, in tokens");
    }
    for (const std::vector<std::int32_t>* tokens : {&request.prompt, &request.forced}) {
      for (std::int32_t token : *tokens) {
        if (token < 0 || token >= model_->limits().vocab) {
          return BadOption(name, absl::StrCat("token ", token, " is outside the vocabulary of ",
                                              model_->limits().vocab));
        }
      }
    }
  }
  std::vector<Completion> completions;
  std::size_t next = 0;
  while (next < requests.size()) {
    Generator wave(*this);
    std::size_t added = 0;
    while (next + added < requests.size() && added < static_cast<std::size_t>(options_.max_batch)) {
      const absl::Status status = wave.Add(requests[next + added]);
      if (!status.ok()) {
        if (added == 0) return status;
        break;  // the next wave takes it
      }
      ++added;
    }
    HOLDFAST_ASSIGN_OR_RETURN(std::vector<Completion> done, wave.Run());
    std::move(done.begin(), done.end(), std::back_inserter(completions));
    next += added;
  }
  return completions;
}

absl::StatusOr<TransitionReport> Engine::Sleep(const std::vector<std::string>& tags,
                                               std::chrono::milliseconds deadline) {
  const EngineState before = state_.exchange(EngineState::kDraining);
  absl::StatusOr<TransitionReport> report =
      residency_->Sleep(tags, std::chrono::steady_clock::now() + deadline);
  state_.store(report.ok() ? EngineState::kAsleep : before);
  return report;
}

absl::StatusOr<TransitionReport> Engine::Wake(const std::vector<std::string>& tags) {
  absl::StatusOr<TransitionReport> report = residency_->Wake(tags);
  if (!report.ok()) return report;
  for (const std::string& tag : arena_->tags()) {
    if (residency_->asleep(tag)) return report;  // partly awake: still asleep as a whole
  }
  state_.store(EngineState::kServing);
  return report;
}

absl::StatusOr<std::uint64_t> Engine::StepCount() {
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer out, device_.AllocateHost(sizeof(std::uint64_t)));
  HOLDFAST_RETURN_IF_ERROR(device_.CopyToHost(
      lane_->stream(), out.data(), arena_->range(step_count_).base, sizeof(std::uint64_t)));
  HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
  return *reinterpret_cast<const std::uint64_t*>(out.data());
}

}  // namespace holdfast
