#include "runtime/generate.h"

#include <algorithm>

#include "runtime/engine.h"

namespace holdfast {

Generator::~Generator() {
  for (const Sequence& sequence : sequences_) engine_.pages_.Return(sequence.pages);
}

absl::Status Generator::Add(const GenerateRequest& request) {
  const auto length = static_cast<std::int32_t>(request.prompt.size()) + request.max_tokens;
  HOLDFAST_ASSIGN_OR_RETURN(std::vector<std::int32_t> pages,
                            engine_.pages_.Take(engine_.tables_.Blocks(length)));
  sequences_.push_back(
      {.request = &request, .pages = std::move(pages), .tokens = request.prompt, .completion = {}});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Completion>> Generator::Run() {
  // Prefill: fill passes with the prompts in order; a prompt that does not fit goes on in the next
  // pass.
  while (true) {
    std::vector<Piece> pieces;
    std::int32_t room = engine_.options_.max_prefill_tokens;
    for (Sequence& sequence : sequences_) {
      if (room == 0) break;
      if (!sequence.completion.tokens.empty()) continue;
      pieces.push_back({&sequence, std::min(room, sequence.pending())});
      room -= pieces.back().tokens;
    }
    if (pieces.empty()) break;
    HOLDFAST_RETURN_IF_ERROR(RunPass(Phase::kPrefill, pieces));
  }
  // Decode: one token of every unfinished sequence a pass, so buckets shrink as sequences end.
  while (true) {
    std::vector<Piece> pieces;
    for (Sequence& sequence : sequences_) {
      if (!sequence.done()) pieces.push_back({&sequence, 1});
    }
    if (pieces.empty()) break;
    HOLDFAST_RETURN_IF_ERROR(RunPass(Phase::kDecode, pieces));
  }
  // The pages go back: no input names them any more. Whoever replays the largest bucket before the
  // next wave runs pads.
  InputBlock(engine_.ShapeOf({Phase::kDecode, engine_.options_.max_batch, 1, ""}),
             reinterpret_cast<std::uint64_t>(engine_.host_input_->buffer.data()))
      .FillWithPads();
  std::vector<Completion> completions;
  for (Sequence& sequence : sequences_) completions.push_back(std::move(sequence.completion));
  return completions;
}

absl::Status Generator::RunPass(Phase phase, const std::vector<Piece>& pieces) {
  std::int32_t rows = 0;
  for (const Piece& piece : pieces) rows += piece.tokens;
  HOLDFAST_ASSIGN_OR_RETURN(Graph* const graph, engine_.graphs_->Dispatch(phase, rows));
  FillInput(pieces, graph->key());
  HOLDFAST_RETURN_IF_ERROR(graph->Replay());
  // The host blocks are free to be read and rewritten only when the replay is done.
  HOLDFAST_RETURN_IF_ERROR(engine_.lane_->Synchronize());
  TakeOutput(pieces, graph->key());
  return absl::OkStatus();
}

void Generator::FillInput(const std::vector<Piece>& pieces, const GraphKey& key) const {
  const InputBlock block(engine_.ShapeOf(key),
                         reinterpret_cast<std::uint64_t>(engine_.host_input_->buffer.data()));
  const std::int32_t page_tokens = engine_.kv_plan_.page_tokens;
  block.FillWithPads();
  std::int32_t row = 0;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(pieces.size()); ++s) {
    const Sequence& sequence = *pieces[static_cast<std::size_t>(s)].sequence;
    const auto length =
        static_cast<std::int32_t>(sequence.request->prompt.size()) + sequence.request->max_tokens;
    engine_.tables_.FillRow(sequence.pages, length,
                            block.block_table + std::int64_t{s} * block.shape.table_stride);
    for (std::int32_t i = 0; i < pieces[static_cast<std::size_t>(s)].tokens; ++i, ++row) {
      const std::int32_t position = sequence.cached + i;
      block.tokens[row] = sequence.tokens[static_cast<std::size_t>(position)];
      block.positions[row] = position;
      // Models with other tables find their rows by those.
      if (engine_.tables_.plain()) {
        block.slots[row] =
            std::int64_t{sequence.pages[static_cast<std::size_t>(position / page_tokens)]} *
                page_tokens +
            position % page_tokens;
      }
      block.row_sequence[row] = s;
      block.row_kv_length[row] = position + 1;
    }
    const GenerateRequest& request = *sequence.request;
    const bool last = pieces[static_cast<std::size_t>(s)].tokens == sequence.pending();
    if (!last) continue;  // the prompt goes on in another pass: no token yet
    block.logits_row[s] = row - 1;
    block.sampling[s] = {.seed = request.seed,
                         .request = request.request,
                         .position = static_cast<std::int32_t>(sequence.tokens.size()),
                         .top_k = request.top_k,
                         .temperature = request.temperature,
                         .active = 1};
  }
}

void Generator::TakeOutput(const std::vector<Piece>& pieces, const GraphKey& key) {
  const BatchShape shape = engine_.ShapeOf(key);
  const OutputBlock block(shape,
                          reinterpret_cast<std::uint64_t>(engine_.host_output_->buffer.data()));
  for (std::size_t s = 0; s < pieces.size(); ++s) {
    Sequence& sequence = *pieces[s].sequence;
    const bool last = pieces[s].tokens == sequence.pending();
    sequence.cached += pieces[s].tokens;
    if (!last) continue;
    const float* logits = block.logits + static_cast<std::int64_t>(s) * shape.vocab;
    Completion& out = sequence.completion;
    const std::size_t step = out.tokens.size();
    out.tokens.push_back(block.tokens[s]);
    out.logit_hashes.push_back(
        HashLeafOnHost(logits, static_cast<std::uint64_t>(shape.vocab) * sizeof(float)));
    if (sequence.request->keep_logits) out.logits.emplace_back(logits, logits + shape.vocab);
    const std::vector<std::int32_t>& forced = sequence.request->forced;
    sequence.tokens.push_back(step < forced.size() ? forced[step] : block.tokens[s]);
  }
}

}  // namespace holdfast
