// From measured scratch to captured graphs: the engine's profile, and its lock.
#include <algorithm>
#include <utility>

#include "device/error.h"
#include "runtime/engine.h"

namespace holdfast {
namespace {

absl::StatusOr<BucketList> PowersOfTwo(int from, int limit) {
  std::vector<int> sizes;
  for (int size = std::min(from, limit); size < limit; size *= 2) sizes.push_back(size);
  sizes.push_back(limit);
  return BucketList::Of(std::move(sizes), limit);
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

absl::Status Engine::MeasureBuckets() {
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
  HOLDFAST_RETURN_IF_ERROR(graphs_->Measure());
  return MakeWorkspaces();
}

absl::Status Engine::Profile(OpenProfile open) {
  HOLDFAST_RETURN_IF_ERROR(Measured(kLibrariesOwner, [this] { return MeasureBuckets(); }));
  HOLDFAST_RETURN_IF_ERROR(arena_->CommitTag(kStateTag));
  HOLDFAST_RETURN_IF_ERROR(workspaces_->Commit());
  HOLDFAST_RETURN_IF_ERROR(arena_->CommitTogether(
      {{input_, arena_->range(input_).bytes}, {output_, arena_->range(output_).bytes}}));
  HOLDFAST_RETURN_IF_ERROR(arena_->Commit(cache_, kv_plan_.page_bytes));  // the null page only
  std::vector<SpanId> alive = {input_, output_, step_count_, cache_};
  const WorkspaceReport workspace = workspaces_->Report();
  for (const SlotUse& slot : workspace.slots) alive.push_back(slot.span);
  for (const PersistentUse& kept : workspace.persistent) alive.push_back(kept.span);
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<ProfileLease> lease,
                            LeaseSpans(*arena_, "the engine's profile", alive));
  HOLDFAST_ASSIGN_OR_RETURN(HeldProfile held, HeldProfile::Hold(std::move(open), std::move(lease)));
  HOLDFAST_RETURN_IF_ERROR(WarmUp(held));
  // Profiling leaves no trace: the counter counts from the first replay.
  HOLDFAST_RETURN_IF_ERROR(
      device_.Fill(lane_->stream(), arena_->range(step_count_).base, 0, sizeof(std::uint64_t)));
  HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
  HOLDFAST_ASSIGN_OR_RETURN(ClosedProfile closed, ClosedProfile::Close(std::move(held)));
  HOLDFAST_ASSIGN_OR_RETURN(profile_, ClosedProfile::Release(std::move(closed)));
  HOLDFAST_RETURN_IF_ERROR(PlanClassicOrder(
      device_.info(), options_.kv_budget(),
      {.profile = profile_,
       .committed_bytes = cache_committed_bytes(),
       .executable_bytes =
           device_.info().is_cuda ? EstimateExecutableBytes(graphs_->operations()) : 0},
      kv_plan_));
  return ledger_->SeparateLocalMemory(kModulesOwner);
}

absl::Status Engine::WarmUp(HeldProfile& held) {
  std::string last;  // the bucket that ran
  absl::Status observed;
  const auto observe = [&] {
    if (!last.empty()) observed.Update(held.Observe(last));
  };
  // The input block of each bucket has a layout of its own: filled anew before each run.
  HOLDFAST_RETURN_IF_ERROR(Measured(kModulesOwner, [&] {
    return graphs_->WarmUp(workspace_, [&](const GraphKey& key) {
      observe();
      last = key.Name();
      FillForWarmUp(
          InputBlock(ShapeOf(key), reinterpret_cast<std::uint64_t>(host_input_->buffer.data())),
          kv_plan_.page_tokens);
    });
  }));
  observe();
  return observed;
}

absl::Status Engine::CaptureAndLock() {
  HOLDFAST_RETURN_IF_ERROR(
      Measured(kExecutablesOwner, [this] { return graphs_->Capture(workspace_); }));
  HOLDFAST_RETURN_IF_ERROR(workspaces_->Lock());
  arena_->Lock();
  return ledger_->SeparateLocalMemory(kExecutablesOwner);
}

}  // namespace holdfast
