#include "attention/sizing/sparse_indexer.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "attention/sizing/requests.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "sparse_indexer";
// The bf16 context buffer of a prefill group holds this many fp8 keys in a bf16 row: 1152 // 132.
constexpr std::int64_t kKeysPerContextRow = 1152 / 132;

const KeyTable<SparseIndexerKeys>& Table() {
  using K = SparseIndexerKeys;
  static const KeyTable<K> table = {
      Required("max_model_len", &K::max_model_len, 1, kMostCount,
               "longest sequence, in tokens (L)"),
      Count("prefill_factor", &K::prefill_factor, 1, 1024, "as of flashmla_sparse (F)"),
      Count("head_dim", &K::head_dim, 32, 4096, "elements of an indexer key (D), a multiple of 32"),
      Switch("fp4", &K::fp4, "keys in fp4 with a scale for 32 elements; off: fp8, one f32 scale"),
      Count("decode_rows", &K::decode_rows, 0, kMostCount,
            "rows of a decode step whose logits are kept (R); 0: not counted"),
      Count("pool", &K::pool, 1, kMostCount, "keys pooled to one logit"),
  };
  return table;
}

}  // namespace

std::int64_t IndexerKeyBytes(std::int64_t head_dim, bool fp4) {
  return fp4 ? head_dim / 2 + head_dim / 32 : head_dim + kF32Bytes;
}

std::int64_t IndexerLogitRows(std::int64_t budget_bytes, std::int64_t keys) {
  return std::max<std::int64_t>(1, budget_bytes / kF32Bytes / std::max<std::int64_t>(1, keys));
}

absl::StatusOr<std::vector<DeclaredRequest>> SparseIndexerRequests(const SparseIndexerKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  if (keys.head_dim % 32 != 0) {
    return RefuseField(kName, "head_dim", absl::StrFormat("%d", keys.head_dim), "a multiple of 32");
  }
  const std::int64_t entries = kKeysPerContextRow * keys.prefill_factor;
  const std::int64_t key_bytes = IndexerKeyBytes(keys.head_dim, keys.fp4 != 0);
  const std::int64_t columns = keys.max_model_len / keys.pool;
  RequestList list;
  list.Add("gathered_keys", {entries, keys.max_model_len, key_bytes},
           absl::StrFormat("%d * %d keys of %d B: a prefill group's, gathered", entries,
                           keys.max_model_len, key_bytes));
  list.Add("radix_topk", {static_cast<std::int64_t>(kMiB)}, "histograms of the radix selection");
  list.Add("decode_logits", {keys.decode_rows, columns, kF32Bytes},
           absl::StrFormat("(%d, %d) f32: logits of a decode step", keys.decode_rows, columns));
  return list.Take();
}

SizingRule SparseIndexerRule() {
  return MakeRequestRule(
      {.name = kName,
       .doc = "sparse indexer: gathered keys, radix top-k, decode logits",
       .formula =
           "gathered_keys 8 * F * L keys of D + 4 B (fp4: D / 2 + D / 32), 8 = 1152 // 132;\n"
           "radix_topk 1 MiB; decode_logits (R, L // pool) f32."},
      Table(), &SparseIndexerRequests);
}

}  // namespace holdfast
