#include <algorithm>

#include "absl/strings/str_format.h"
#include "attention/sizing/dense_mla.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "chunked_prefill";
constexpr std::int64_t kWidth = 576;
constexpr std::int64_t kMostRows = 65536;  // larger chunks would only cost memory

const KeyTable<ChunkedPrefillKeys>& Table() {
  using K = ChunkedPrefillKeys;
  static const KeyTable<K> table = {
      Required("max_model_len", &K::max_model_len, 1, kMostCount,
               "longest sequence, in tokens (L)"),
      Required("max_num_seqs", &K::max_num_seqs, 1, kMostCount, "sequences of a pass (S)"),
      Count("block_size", &K::block_size, 1, 1 << 20, "tokens of a cache page"),
      Count("heads", &K::heads, 0, 4096,
            "query heads (H): counts the up-projected chunk; 0: not counted"),
      Count("nope_dim", &K::nope_dim, 1, 4096, "un-rotated key elements a head"),
      Count("value_dim", &K::value_dim, 1, 4096, "value elements a head"),
      Count("index_topk", &K::index_topk, 0, kMostCount,
            "sparse: keys a row reads, which bounds the rows by S * index_topk; 0: dense"),
  };
  return table;
}

}  // namespace

absl::StatusOr<std::vector<DeclaredRequest>> ChunkedPrefillRequests(
    const ChunkedPrefillKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  const std::int64_t most_wanted = kMostRows;
  // Beyond kMostRows the exact number does not matter: cut before multiplying.
  const std::int64_t lengths = 8 * std::min(keys.max_model_len, most_wanted);
  const std::int64_t seqs = std::min(keys.max_num_seqs, most_wanted);
  std::int64_t rows = std::min(std::max(lengths, 4 * seqs * keys.block_size), kMostRows);
  if (keys.index_topk > 0) rows = std::min(rows, seqs * std::min(keys.index_topk, most_wanted));
  rows = RoundUp(rows, keys.block_size);
  RequestList list;
  list.Add("context_chunk", {rows, kWidth, kBF16Bytes},
           absl::StrFormat("(%d, %d) bf16: cached context of a chunk", rows, kWidth));
  list.Add("up_projected", {rows, keys.heads, keys.nope_dim + keys.value_dim, kBF16Bytes},
           absl::StrFormat("(%d, %d, %d) bf16: its keys and values", rows, keys.heads,
                           keys.nope_dim + keys.value_dim));
  return list.Take();
}

SizingRule ChunkedPrefillRule() {
  return MakeRequestRule(
      {.name = kName,
       .doc = "context chunks of un-absorbed MLA prefill",
       .formula =
           "context_chunk (rows, 576) bf16,\n"
           "rows = min(max(8 * L, 4 * S * block_size), 65536), at most S * index_topk where\n"
           "given, rounded up to block_size; with H also\n"
           "up_projected (rows, H, nope_dim + value_dim) bf16."},
      Table(), &ChunkedPrefillRequests);
}

}  // namespace holdfast
