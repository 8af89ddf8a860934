#include <algorithm>

#include "absl/strings/str_format.h"
#include "attention/sizing/flashinfer.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "flashinfer_gqa";

const KeyTable<FlashInferGqaKeys>& Table() {
  using K = FlashInferGqaKeys;
  static const KeyTable<K> table = {
      Required("heads", &K::heads, 1, 4096, "query heads of this rank (H)"),
      Required("kv_heads", &K::kv_heads, 1, 4096, "key heads of this rank (G)"),
      Count("head_dim", &K::head_dim, 1, 4096, "elements of a value head (D)"),
      Count("sms", &K::sms, 1, 4096, "multiprocessors of the device"),
      Count("tile_rows", &K::tile_rows, 1, 1024, "query rows of a tile (R)"),
      Count("tiles", &K::tiles, 1, kMostCount,
            "tiles of the largest batch: for decode its sequences"),
  };
  return table;
}

}  // namespace

absl::StatusOr<std::vector<DeclaredRequest>> FlashInferGqaRequests(const FlashInferGqaKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  if (keys.heads % keys.kv_heads != 0) {
    return RefuseField(kName, "kv_heads", absl::StrFormat("%d", keys.kv_heads),
                       absl::StrFormat("a divisor of heads, %d", keys.heads));
  }
  const std::int64_t tiles = std::max(2 * keys.sms / keys.kv_heads, keys.tiles);
  RequestList list;
  list.Add("partial_out", {keys.heads, tiles, keys.tile_rows, keys.head_dim, kF32Bytes},
           absl::StrFormat("(%d heads, %d tiles, %d rows, %d) f32", keys.heads, tiles,
                           keys.tile_rows, keys.head_dim));
  list.Add("partial_lse", {keys.heads, tiles, keys.tile_rows, kF32Bytes},
           absl::StrFormat("(%d heads, %d tiles, %d rows) f32", keys.heads, tiles, keys.tile_rows));
  return list.Take();
}

SizingRule FlashInferGqaRule() {
  return MakeRequestRule({.name = kName,
                          .doc = "FlashInfer grouped-query prefill and tensor-core decode",
                          .formula = "partial_out (H, N, R, D) f32 + partial_lse (H, N, R) f32,\n"
                                     "N = max(2 * sms // G, tiles)."},
                         Table(), &FlashInferGqaRequests);
}

}  // namespace holdfast
