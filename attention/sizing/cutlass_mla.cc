#include <algorithm>

#include "absl/strings/str_format.h"
#include "attention/sizing/dense_mla.h"
#include "attention/sizing/requests.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "cutlass_mla";
constexpr std::int64_t kLeastBytes = 128 * static_cast<std::int64_t>(kMiB);
constexpr std::int64_t kPaddedHeads = 128, kWidth = 512, kSplitKeys = 128;
constexpr std::int64_t kRowBytes = 4 * kWidth + 4;  // f32 output and lse of a row

const KeyTable<CutlassMlaKeys>& Table() {
  using K = CutlassMlaKeys;
  static const KeyTable<K> table = {
      Required("max_num_seqs", &K::max_num_seqs, 1, kMostCount, "sequences decoded together (S)"),
      Required("max_model_len", &K::max_model_len, 1, kMostCount,
               "longest sequence, in tokens (L)"),
      Count("sms", &K::sms, 1, 4096, "multiprocessors of the device"),
  };
  return table;
}

std::int64_t Splits(std::int64_t batch, const CutlassMlaKeys& keys) {
  const std::int64_t by_keys = CeilDiv(keys.max_model_len, kSplitKeys);
  const std::int64_t by_device = std::max<std::int64_t>(1, keys.sms / (2 * batch));
  return std::min<std::int64_t>({by_keys, by_device, 256});
}

// The most batch * splits of any batch up to the largest: a small batch that is split may need more
// than a large one that is not. Above sms / 2 nothing is split.
std::int64_t MostPieces(const CutlassMlaKeys& keys) {
  std::int64_t most = keys.max_num_seqs;
  for (std::int64_t b = 1; b <= std::min(keys.max_num_seqs, keys.sms / 2); ++b) {
    most = std::max(most, b * Splits(b, keys));
  }
  return most;
}

}  // namespace

absl::StatusOr<std::vector<DeclaredRequest>> CutlassMlaRequests(const CutlassMlaKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  const std::int64_t pieces = MostPieces(keys);
  HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t need,
                            Product("workspace", {pieces, kPaddedHeads, kRowBytes}));
  const bool least = need < static_cast<std::uint64_t>(kLeastBytes);
  RequestList list;
  if (least) {
    list.Add("workspace", {kLeastBytes}, "the library's own least");
  } else {
    list.Add("workspace", {pieces, kPaddedHeads, kRowBytes},
             absl::StrFormat("%d pieces of %d rows: the worst batch, split", pieces, kPaddedHeads));
  }
  list.Add("out_padded", {keys.max_num_seqs, kPaddedHeads, kWidth, kBF16Bytes},
           absl::StrFormat("(%d, %d, %d) bf16", keys.max_num_seqs, kPaddedHeads, kWidth));
  return list.Take();
}

SizingRule CutlassMlaRule() {
  return MakeRequestRule(
      {.name = kName,
       .doc = "CUTLASS MLA decode, at its worst batch",
       .formula =
           "workspace max(128 MiB, (4 * 512 + 4) * 128 * max over b <= S of b * splits(b)),\n"
           "splits(b) = min(ceil(L / 128), max(1, sms // (2 * b)), 256);\n"
           "out_padded (S, 128, 512) bf16."},
      Table(), &CutlassMlaRequests);
}

}  // namespace holdfast
