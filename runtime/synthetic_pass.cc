#include "runtime/synthetic_pass.h"

#include "runtime/kernels/pattern.h"
#include "runtime/kernels/synthetic_rows.h"

namespace holdfast {

absl::Status SyntheticPass::Enqueue(StepContext& step, const InputBlock& input,
                                    const OutputBlock& output, SpanId cache) {
  HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer cells,
                            step.Scratch("synthetic.cells", 2 * sizeof(std::uint64_t)));
  HOLDFAST_ASSIGN_OR_RETURN(
      const ScratchBuffer hidden,
      step.Scratch("synthetic.hidden",
                   static_cast<std::uint64_t>(shape_.rows) * sizeof(std::uint64_t)));
  const Run run{.step = step,
                .input = input,
                .pool = step.Resolve(cache),
                .hidden = hidden.As<std::uint64_t>(),
                .salt = cells.As<std::uint64_t>(),
                .digest = cells.As<std::uint64_t>() + 1};
  HOLDFAST_RETURN_IF_ERROR(step.Fill(cells.address(), 0, cells.bytes()));
  const SyntheticEmbedParams embed{
      .tokens = input.tokens,
      .table = step.Resolve(stack_.embed_span_).As<const std::uint64_t>(),
      .hidden = run.hidden,
      .salt = run.salt,
      .rows = shape_.rows,
      .vocab = shape_.vocab};
  HOLDFAST_RETURN_IF_ERROR(step.Launch(SyntheticEmbedOp(), SyntheticEmbedShape(embed), embed));
  for (std::size_t layer = 0; layer < stack_.layers_.size(); ++layer) {
    HOLDFAST_RETURN_IF_ERROR(RunLayer(run, layer));
  }
  const auto bytes = static_cast<std::uint64_t>(shape_.vocab) * sizeof(std::uint64_t);
  HOLDFAST_RETURN_IF_ERROR(
      Verify(run, stack_.embed_, step.Resolve(stack_.embed_span_), bytes, nullptr));
  HOLDFAST_RETURN_IF_ERROR(
      Verify(run, stack_.head_, step.Resolve(stack_.head_span_), bytes, nullptr));
  const SyntheticLogitsParams logits{
      .hidden = run.hidden,
      .head = step.Resolve(stack_.head_span_).As<const std::uint64_t>(),
      .logits_row = input.logits_row,
      .digest = run.digest,
      .logits = output.logits,
      .sequences = shape_.sequences,
      .vocab = shape_.vocab};
  return step.Launch(SyntheticLogitsOp(), SyntheticLogitsShape(logits), logits);
}

absl::Status SyntheticPass::RunLayer(const Run& run, std::size_t index) {
  const DeclaredLayer& layer = stack_.layers_[index];
  const SyntheticStack::Layer& parts = stack_.parts_[index];
  const AttentionDeclaration& declared = layer.declaration();
  const bool planted = stack_.plants_.call && stack_.plants_.call->layer == index;
  HOLDFAST_RETURN_IF_ERROR(
      layer.CheckCall(planted ? stack_.plants_.call->config : layer.config()));

  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<ScratchBuffer> scratch,
                            AskScratch(run.step, index));
  for (std::size_t i = 0; i < scratch.size(); ++i) {
    HOLDFAST_RETURN_IF_ERROR(Write(run, parts.scratch[i], AddressOf(scratch, index, i),
                                   layer.touched_bytes(i), run.salt));
  }
  HOLDFAST_RETURN_IF_ERROR(WriteCaches(run, index));
  const DeviceAddress weight = run.step.Resolve(parts.weight_span);
  HOLDFAST_RETURN_IF_ERROR(Verify(run, parts.weight, weight, kSyntheticWeightBytes, nullptr));
  for (std::size_t i = 0; i < parts.persistent.size(); ++i) {
    const DeviceAddress kept = run.step.Resolve(parts.persistent_spans[i]);
    const std::uint64_t bytes = declared.persistent[i].bytes;
    HOLDFAST_RETURN_IF_ERROR(Verify(run, parts.persistent[i], kept, bytes, nullptr));
    HOLDFAST_RETURN_IF_ERROR(Write(run, parts.persistent[i], kept, bytes, nullptr));
  }
  HOLDFAST_RETURN_IF_ERROR(ReadCaches(run, index));
  for (std::size_t i = 0; i < scratch.size(); ++i) {
    HOLDFAST_RETURN_IF_ERROR(Verify(run, parts.scratch[i], AddressOf(scratch, index, i),
                                    layer.touched_bytes(i), run.salt));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ScratchBuffer>> SyntheticPass::AskScratch(StepContext& step,
                                                                     std::size_t layer) const {
  std::vector<ScratchBuffer> buffers;
  const AttentionDeclaration& declared = stack_.layers_[layer].declaration();
  for (std::size_t i = 0; i < declared.scratch.size(); ++i) {
    HOLDFAST_ASSIGN_OR_RETURN(
        ScratchBuffer buffer,
        step.Scratch(stack_.parts_[layer].scratch[i].name, declared.scratch[i].bytes));
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

DeviceAddress SyntheticPass::AddressOf(const std::vector<ScratchBuffer>& scratch,
                                       std::size_t layer, std::size_t request) const {
  const std::optional<SyntheticPlants::Overlap>& overlap = stack_.plants_.overlap;
  if (overlap && overlap->layer == layer && overlap->second == request) {
    return scratch[overlap->first].address();
  }
  return scratch[request].address();
}

absl::Status SyntheticPass::WriteCaches(const Run& run, std::size_t layer) const {
  for (std::size_t i = 0; i < stack_.caches_.caches.size(); ++i) {
    const SyntheticCache& cache = stack_.caches_.caches[i];
    if (cache.layer != layer || cache.page.kind == KvKind::kState) continue;
    SyntheticCacheWriteParams params{.cache = cache.layout,
                                     .tokens = run.input.tokens,
                                     .positions = run.input.positions,
                                     .row_sequence = run.input.row_sequence,
                                     .row_kv_length = run.input.row_kv_length,
                                     .rows = shape_.rows};
    params.cache.pool = run.pool.As<char>();
    params.cache.block_table = run.input.block_table;
    params.cache.key = stack_.cache_buffers_[i].key;
    HOLDFAST_RETURN_IF_ERROR(
        run.step.Launch(SyntheticCacheWriteOp(), SyntheticCacheShape(shape_.rows), params));
  }
  return absl::OkStatus();
}

absl::Status SyntheticPass::ReadCaches(const Run& run, std::size_t layer) const {
  for (std::size_t i = 0; i < stack_.caches_.caches.size(); ++i) {
    const SyntheticCache& cache = stack_.caches_.caches[i];
    if (cache.layer != layer) continue;
    const SyntheticStack::Buffer& buffer = stack_.cache_buffers_[i];
    if (cache.page.kind == KvKind::kState) {
      HOLDFAST_RETURN_IF_ERROR(UpdateState(run, cache, buffer));
      continue;
    }
    SyntheticCacheReadParams params{.cache = cache.layout,
                                    .row_sequence = run.input.row_sequence,
                                    .row_kv_length = run.input.row_kv_length,
                                    .hidden = run.hidden,
                                    .digest = run.digest,
                                    .fault = FaultOf(run, buffer),
                                    .rows = shape_.rows};
    params.cache.pool = run.pool.As<char>();
    params.cache.block_table = run.input.block_table;
    params.cache.key = buffer.key;
    HOLDFAST_RETURN_IF_ERROR(
        run.step.Launch(SyntheticCacheReadOp(), SyntheticCacheShape(shape_.rows), params));
  }
  return absl::OkStatus();
}

absl::Status SyntheticPass::UpdateState(const Run& run, const SyntheticCache& cache,
                                        const SyntheticStack::Buffer& buffer) const {
  const SyntheticStateParams params{.pool = run.pool.As<char>(),
                                    .block_table = run.input.block_table,
                                    .tokens = run.input.tokens,
                                    .positions = run.input.positions,
                                    .row_sequence = run.input.row_sequence,
                                    .row_kv_length = run.input.row_kv_length,
                                    .hidden = run.hidden,
                                    .digest = run.digest,
                                    .fault = FaultOf(run, buffer),
                                    .block_bytes = cache.layout.block_bytes,
                                    .layer_offset = cache.layout.layer_offset,
                                    .key = buffer.key,
                                    .table_stride = cache.layout.table_stride,
                                    .table_first = cache.layout.table_first,
                                    .rows = shape_.rows,
                                    .sequences = shape_.sequences,
                                    .state_bytes = cache.layout.row_bytes};
  return run.step.Launch(SyntheticStateOp(), SyntheticStateShape(params), params);
}

absl::Status SyntheticPass::Write(const Run& run, const SyntheticStack::Buffer& buffer,
                                  DeviceAddress data, std::uint64_t bytes,
                                  const std::uint64_t* salt) const {
  if (bytes == 0) return absl::OkStatus();
  const PatternWriteParams params{
      .data = data.As<void>(), .salt = salt, .bytes = bytes, .key = buffer.key};
  return run.step.Launch(PatternWriteOp(), PatternShape(bytes), params);
}

absl::Status SyntheticPass::Verify(const Run& run, const SyntheticStack::Buffer& buffer,
                                   DeviceAddress data, std::uint64_t bytes,
                                   const std::uint64_t* salt) const {
  if (bytes == 0) return absl::OkStatus();
  const PatternVerifyParams params{.data = data.As<const void>(),
                                   .salt = salt,
                                   .digest = run.digest,
                                   .fault = FaultOf(run, buffer),
                                   .bytes = bytes,
                                   .key = buffer.key};
  return run.step.Launch(PatternVerifyOp(), PatternShape(bytes), params);
}

PatternFault* SyntheticPass::FaultOf(const Run& run, const SyntheticStack::Buffer& buffer) const {
  return run.step.Resolve(stack_.faults_span_).As<PatternFault>() + buffer.fault;
}

}  // namespace holdfast
