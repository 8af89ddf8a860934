// Which captured shape a graph is.
#ifndef HOLDFAST_GRAPHS_GRAPH_KEY_H_
#define HOLDFAST_GRAPHS_GRAPH_KEY_H_

#include <compare>
#include <string>

namespace holdfast {

enum class Phase { kPrefill, kDecode };
const char* PhaseName(Phase phase);  // "prefill", "decode"

// The graphs among which a size alone decides.
struct GraphFamily {
  Phase phase = Phase::kDecode;
  int query_length = 1;  // new tokens a sequence (decode)
  std::string variant;   // "" or a name of the user's

  auto operator<=>(const GraphFamily&) const = default;
  std::string Name() const;  // "decode", "decode/q2/variant"
};

struct GraphKey {
  Phase phase = Phase::kDecode;
  int size = 0;          // decode: batch; prefill: tokens
  int query_length = 1;  // new tokens a sequence (decode)
  std::string variant;   // "" or a name of the user's

  auto operator<=>(const GraphKey&) const = default;
  GraphFamily family() const { return {phase, query_length, variant}; }
  std::string Name() const;  // "decode/8", "prefill/64", "decode/8/q2/variant"
};

GraphKey KeyOf(const GraphFamily& family, int size);

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_GRAPH_KEY_H_
