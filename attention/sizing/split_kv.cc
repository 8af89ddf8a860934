#include "attention/sizing/split_kv.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "split_kv";
constexpr std::int64_t kPlanRecordBytes =
    32;  // of a part: first and last request, key block, split

const KeyTable<SplitKvKeys>& Table() {
  using K = SplitKvKeys;
  static const KeyTable<K> table = {
      Required("heads", &K::heads, 1, 4096, "query heads of this rank (H)"),
      Count("query_len", &K::query_len, 1, kMostCount, "new tokens of a request (Q)"),
      Count("max_num_seqs", &K::max_num_seqs, 0, kMostCount,
            "requests of a step (B); 0: any number"),
      Count("sms", &K::sms, 1, 4096, "multiprocessors of the device"),
      Count("width", &K::width, 1, 1 << 16, "elements of an output row (V)"),
      Choice("scheme", &K::scheme, {"bounded", "flashmla"}, "how many pieces get a slot"),
      Switch("pad_rows", &K::pad_rows, "rows rounded up to whole tiles of 64 (bounded)"),
      Switch("plan", &K::plan, "count the step's split plan too"),
  };
  return table;
}

}  // namespace

std::int64_t SplitParts(std::int64_t rows, std::int64_t sms) {
  return std::max<std::int64_t>(sms / CeilDiv(rows, kSplitTileRows), 1);
}

absl::StatusOr<std::vector<DeclaredRequest>> SplitKvRequests(const SplitKvKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  if (keys.scheme == kSplitFlashMla && keys.max_num_seqs == 0) {
    return RefuseField(kName, "max_num_seqs", "0", "at least 1 with scheme=flashmla");
  }
  const std::int64_t real_rows = keys.query_len * keys.heads;
  const std::int64_t parts = SplitParts(real_rows, keys.sms), cuts = parts - 1;
  const bool bounded = keys.scheme == kSplitBounded;
  const std::int64_t batch = keys.max_num_seqs;
  const std::int64_t slots =
      !bounded ? batch + parts : cuts + (batch == 0 ? cuts : std::min(batch, cuts));
  const std::int64_t rows =
      bounded && keys.pad_rows != 0 ? RoundUp(real_rows, kSplitTileRows) : real_rows;
  RequestList list;
  list.Add("o_accum", {slots, rows, keys.width, kF32Bytes},
           absl::StrFormat("(%d slots, %d rows, %d) f32: outputs of pieces, %d parts", slots, rows,
                           keys.width, parts));
  list.Add("lse_accum", {slots, rows, kF32Bytes},
           absl::StrFormat("(%d slots, %d rows) f32: their log-sum-exp", slots, rows));
  if (keys.plan != 0) {
    list.Add("plan", {parts, kPlanRecordBytes},
             absl::StrFormat("a record for each of %d parts", parts));
    list.Add("split_prefix", {batch + 1, kI32Bytes},
             absl::StrFormat("(%d) i32: first piece of each request", batch + 1));
  }
  return list.Take();
}

absl::StatusOr<std::vector<DeclaredRequest>> SplitKvWorstCase(std::int64_t heads,
                                                              std::int64_t query_len,
                                                              std::int64_t sms,
                                                              std::int64_t width) {
  std::vector<DeclaredRequest> worst;
  std::uint64_t most = 0;
  // From as many tiles as multiprocessors on there is one part, and no cut.
  for (std::int64_t q = 1; q <= query_len && CeilDiv(q * heads, kSplitTileRows) <= sms; ++q) {
    HOLDFAST_ASSIGN_OR_RETURN(
        std::vector<DeclaredRequest> requests,
        SplitKvRequests({.heads = heads, .query_len = q, .sms = sms, .width = width}));
    HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t bytes, TotalBytes(requests));
    if (bytes > most) {
      most = bytes;
      worst = std::move(requests);
    }
  }
  return worst;
}

SizingRule SplitKvRule() {
  return MakeRequestRule(
      {.name = kName,
       .doc = "split-KV attention: partial outputs, bounded whatever the batch",
       .formula =
           "P = max(sms // ceil(Q * H / 64), 1); slots = (P - 1) + min(B, P - 1), any batch:\n"
           "2 (P - 1); scheme flashmla: B + P. o_accum (slots, rows, V) f32,\n"
           "lse_accum (slots, rows) f32, rows = Q * H rounded up to 64 (flashmla: not);\n"
           "with plan also 32 * P and (B + 1) i32."},
      Table(), &SplitKvRequests);
}

}  // namespace holdfast
