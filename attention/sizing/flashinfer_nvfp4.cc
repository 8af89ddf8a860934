#include <algorithm>

#include "absl/strings/str_format.h"
#include "attention/sizing/flashinfer.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "flashinfer_nvfp4";
constexpr std::int64_t kRowBytes = 576;        // one e4m3 element each
constexpr std::int64_t kMostStagedRows = 256;  // longer decode batches go in pieces

const KeyTable<FlashInferNvfp4Keys>& Table() {
  using K = FlashInferNvfp4Keys;
  static const KeyTable<K> table = {
      Required("max_model_len", &K::max_model_len, 1, kMostCount,
               "longest sequence, in tokens (L)"),
      Required("max_num_batched_tokens", &K::max_num_batched_tokens, 1, kMostCount,
               "tokens of one pass (T)"),
      Required("max_num_seqs", &K::max_num_seqs, 1, kMostCount, "sequences decoded together (S)"),
      Count("num_speculative_tokens", &K::num_speculative_tokens, 0, 4096, "draft tokens (K)"),
      Count("topk", &K::topk, 1, 1 << 20, "keys a row reads"),
      Count("prefill_factor", &K::prefill_factor, 1, 1024, "as of flashmla_sparse (F)"),
      Switch("native", &K::native, "the decode kernel reads nvfp4 itself: no decode staging"),
  };
  return table;
}

}  // namespace

absl::StatusOr<std::vector<DeclaredRequest>> FlashInferNvfp4Requests(
    const FlashInferNvfp4Keys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  const std::int64_t context = RoundUp(keys.prefill_factor * keys.max_model_len, 64);
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::uint64_t decode_rows,
      Product("decode rows", {keys.max_num_seqs, keys.num_speculative_tokens + 1}));
  const std::int64_t rows = static_cast<std::int64_t>(std::min<std::uint64_t>(
      decode_rows,
      static_cast<std::uint64_t>(std::min(keys.max_num_batched_tokens, kMostStagedRows))));
  RequestList list;
  list.Add("prefill_staging", {context, kRowBytes},
           absl::StrFormat("(%d, %d) e4m3: context of a prefill group", context, kRowBytes));
  if (keys.native == 0) {
    list.Add(
        "decode_staging", {rows, keys.topk, kRowBytes},
        absl::StrFormat("(%d, %d, %d) e4m3: the keys each row reads", rows, keys.topk, kRowBytes));
    list.Add("decode_indices", {rows, keys.topk, kI32Bytes},
             absl::StrFormat("(%d, %d) i32: where they lie in it", rows, keys.topk));
  }
  return list.Take();
}

SizingRule FlashInferNvfp4Rule() {
  return MakeRequestRule(
      {.name = kName,
       .doc = "staging of an nvfp4 cache for FlashInfer's fp8 kernels",
       .formula = "prefill_staging roundup(F * L, 64) * 576 B; unless native, with\n"
                  "n = min(T, S * (K + 1), 256): decode_staging n * topk * 576 B and\n"
                  "decode_indices n * topk * 4 B."},
      Table(), &FlashInferNvfp4Requests);
}

}  // namespace holdfast
