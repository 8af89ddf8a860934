// What a started engine does: generate, sleep, wake.
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/engine.h"

namespace holdfast {
namespace {

absl::Status BadOption(const std::string& name, const std::string& why) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name}, why);
}

}  // namespace

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
