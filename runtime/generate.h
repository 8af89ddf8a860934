// Generation over the engine's graphs: prompts prefilled in token buckets, sequences decoded in
// batch buckets.
#ifndef HOLDFAST_RUNTIME_GENERATE_H_
#define HOLDFAST_RUNTIME_GENERATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/hash.h"
#include "graphs/graph_key.h"

namespace holdfast {

class Engine;

struct GenerateRequest {
  std::vector<std::int32_t> prompt;  // token ids, at least one
  std::int32_t max_tokens = 16;      // > 0
  float temperature = 0;             // <= 0: greedy
  std::int32_t top_k = 0;            // 0: no limit
  std::uint64_t seed = 0;
  std::uint64_t request = 0;  // the draws depend on seed, request and position alone
  // Fed instead of the drawn tokens, as far as they reach: scores a given text.
  std::vector<std::int32_t> forced;
  bool keep_logits = false;
};

struct Completion {
  std::vector<std::int32_t> tokens;  // drawn; forced positions hold what would have been drawn
  std::vector<Hash128>
      logit_hashes;  // of the logits each token was drawn from: equal hash, equal bits
  std::vector<std::vector<float>> logits;  // (tokens, vocab) if keep_logits
  bool operator==(const Completion&) const = default;
};

// Generates one wave: at most max_batch requests, all of whose pages fit. Used by Engine::Generate.
class Generator {
 public:
  explicit Generator(Engine& engine) : engine_(engine) {}
  ~Generator();
  // kOutOfMemory if the pages do not suffice; then Clear and retry with fewer.
  absl::Status Add(const GenerateRequest& request);
  absl::StatusOr<std::vector<Completion>> Run();

 private:
  struct Sequence {
    const GenerateRequest* request;
    std::vector<std::int32_t> pages;
    std::vector<std::int32_t> tokens;  // prompt, then what was fed
    std::int32_t cached = 0;           // tokens whose keys are in the cache
    Completion completion;
    bool done() const {
      return completion.tokens.size() == static_cast<std::size_t>(request->max_tokens);
    }
    std::int32_t pending() const { return static_cast<std::int32_t>(tokens.size()) - cached; }
  };
  // Tokens of one sequence in one pass.
  struct Piece {
    Sequence* sequence;
    std::int32_t tokens;
  };

  absl::Status RunPass(Phase phase, const std::vector<Piece>& pieces);
  void FillInput(const std::vector<Piece>& pieces, const GraphKey& key) const;
  void TakeOutput(const std::vector<Piece>& pieces, const GraphKey& key);

  Engine& engine_;
  std::vector<Sequence> sequences_;
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_GENERATE_H_
