#include "testing/engine_subject.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "runtime/mla_model.h"

namespace holdfast::testing {
namespace {

constexpr std::int32_t kNewTokens = 4;

// Every bucket is met: batches of one, of as many as are decoded together, and one of prompts too
// short to fill a prefill.
std::vector<std::vector<GenerateRequest>> Batches(const EngineOptions& options, std::int32_t vocab,
                                                  std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::int32_t longest =
      std::min(options.max_prefill_tokens, options.max_sequence - kNewTokens);
  std::vector<std::vector<GenerateRequest>> batches;
  std::uint64_t id = 0;
  for (const auto& [count, length] :
       {std::pair{1, std::max(1, longest / 4)}, {options.max_batch, longest}}) {
    std::vector<GenerateRequest>& batch = batches.emplace_back();
    for (std::int32_t i = 0; i < count; ++i) {
      GenerateRequest request{.prompt = {}, .max_tokens = kNewTokens, .forced = {}};
      // Half of them greedy, half drawn.
      request.temperature = i % 2 == 0 ? 0.0f : 0.8f;
      request.seed = seed;
      request.request = id++;
      const std::int32_t tokens = std::max(1, length - 3 * i);
      for (std::int32_t t = 0; t < tokens; ++t) {
        request.prompt.push_back(
            static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(vocab)));
      }
      batch.push_back(std::move(request));
    }
  }
  return batches;
}

template <typename T>
std::vector<std::byte> BytesOf(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

absl::StatusOr<DType> EngineSubject::TypeOf(const std::string& dtype, bool is_cuda) {
  if (dtype == "auto") return is_cuda ? DType::kBF16 : DType::kF32;
  if (dtype == "f32") return DType::kF32;
  if (dtype == "bf16") return DType::kBF16;
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "--dtype"},
                   absl::StrCat("'", dtype, "' is none of auto, f32, bf16"));
}

SubjectFactory EngineSubject::Factory(EngineSubjectOptions options) {
  return [options](Device& device,
                   const SubjectOptions& subject) -> absl::StatusOr<std::unique_ptr<Subject>> {
    if (subject.plant != Fault::kNone && subject.plant != Fault::kStalePointer) {
      return MakeError({.kind = ErrorKind::kUnsupported, .object = options.model},
                       absl::StrCat("the engine cannot plant ", FaultName(subject.plant)));
    }
    HOLDFAST_ASSIGN_OR_RETURN(const DType type, TypeOf(options.dtype, device.info().is_cuda));
    HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<MlaModel> model, MlaModel::Open(options.model, type));
    EngineOptions engine = options.engine;
    engine.plant_stale_pointer = subject.plant == Fault::kStalePointer;
    HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<Engine> made,
                              Engine::Create(device, std::move(model), std::move(engine)));
    return std::unique_ptr<Subject>(new EngineSubject(options.model, std::move(made)));
  };
}

absl::StatusOr<Outputs> EngineSubject::Run(const RunRequest& request) {
  if (request.eager || request.poison_pads) {
    return MakeError(
        {.kind = ErrorKind::kUnsupported, .object = name_},
        request.eager ? "the engine runs no step eagerly" : "the engine fills its pads itself");
  }
  Outputs outputs;
  std::size_t batch = 0;
  for (const std::vector<GenerateRequest>& requests :
       Batches(engine_->options(), engine_->model().limits().vocab, request.seed)) {
    HOLDFAST_ASSIGN_OR_RETURN(const std::vector<Completion> completions,
                              engine_->Generate(requests));
    for (std::size_t i = 0; i < completions.size(); ++i) {
      const std::string name = absl::StrCat("batch ", batch, " prompt ", i);
      outputs[name + ".tokens"] = BytesOf(completions[i].tokens);
      outputs[name + ".logits"] = BytesOf(completions[i].logit_hashes);
    }
    ++batch;
  }
  return outputs;
}

absl::Status EngineSubject::Enqueue() {
  HOLDFAST_ASSIGN_OR_RETURN(
      Graph* const graph, engine_->graphs().Dispatch(Phase::kDecode, engine_->options().max_batch));
  return graph->Replay();
}

absl::StatusOr<TransitionReport> EngineSubject::Sleep(const std::vector<std::string>& tags,
                                                      Residency::Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return engine_->Sleep(tags, std::max(left, std::chrono::milliseconds{0}));
}

}  // namespace holdfast::testing
