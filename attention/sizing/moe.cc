#include "attention/sizing/moe.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "moe";

const KeyTable<MoeKeys>& Table() {
  using K = MoeKeys;
  static const KeyTable<K> table = {
      Required("max_num_batched_tokens", &K::max_num_batched_tokens, 1, kMostCount,
               "tokens of one pass (M)"),
      Required("topk", &K::topk, 1, 4096, "experts a token goes to"),
      Required("n", &K::n, 1, kMostCount, "columns of the first product (N)"),
      Required("k", &K::k, 1, kMostCount, "hidden size (K)"),
  };
  return table;
}

}  // namespace

absl::StatusOr<std::vector<DeclaredRequest>> MoeRequests(const MoeKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  const std::int64_t tokens = keys.max_num_batched_tokens, width = std::max(keys.n, keys.k);
  // The layer's output (M, K) lies in the first workspace, which is never smaller.
  const std::string shape = absl::StrFormat("(%d, %d, %d) bf16", tokens, keys.topk, width);
  return RequestList()
      .Add("workspace13", {tokens, keys.topk, width, kBF16Bytes},
           shape + ": first and third product, and the output over them")
      .Add("workspace2", {tokens, keys.topk, width, kBF16Bytes}, shape + ": the activation")
      .Take();
}

SizingRule MoeRule() {
  return MakeRequestRule({.name = kName,
                          .doc = "fused expert layer",
                          .formula = "workspace13 + workspace2, each (M, topk, max(N, K)) bf16."},
                         Table(), &MoeRequests);
}

}  // namespace holdfast
