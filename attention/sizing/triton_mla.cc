#include "absl/strings/str_format.h"
#include "attention/sizing/dense_mla.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "triton_mla";
constexpr std::int64_t kWidth = 512;

const KeyTable<TritonMlaKeys>& Table() {
  using K = TritonMlaKeys;
  static const KeyTable<K> table = {
      Required("max_num_seqs", &K::max_num_seqs, 1, kMostCount, "sequences decoded together (B)"),
      Required("heads", &K::heads, 1, 4096, "query heads of this rank (H)"),
      Count("splits", &K::splits, 1, 1024, "pieces of a row's keys; 1 if batch-invariant"),
      Switch("output", &K::output, "count output and log-sum-exp too"),
  };
  return table;
}

}  // namespace

absl::StatusOr<std::vector<DeclaredRequest>> TritonMlaRequests(const TritonMlaKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  const std::int64_t batch = keys.max_num_seqs, heads = keys.heads;
  RequestList list;
  list.Add("attn_logits", {batch, heads, keys.splits, kWidth + 1, kF32Bytes},
           absl::StrFormat("(%d, %d, %d splits, %d) f32: partial outputs with their lse", batch,
                           heads, keys.splits, kWidth + 1));
  if (keys.output != 0) {
    list.Add("out", {batch, heads, kWidth, kBF16Bytes},
             absl::StrFormat("(%d, %d, %d) bf16", batch, heads, kWidth));
    list.Add("lse", {batch, heads, kF32Bytes}, absl::StrFormat("(%d, %d) f32", batch, heads));
  }
  return list.Take();
}

SizingRule TritonMlaRule() {
  return MakeRequestRule({.name = kName,
                          .doc = "Triton MLA decode",
                          .formula = "attn_logits (B, H, splits, 513) f32; with output also\n"
                                     "out (B, H, 512) bf16 and lse (B, H) f32."},
                         Table(), &TritonMlaRequests);
}

}  // namespace holdfast
