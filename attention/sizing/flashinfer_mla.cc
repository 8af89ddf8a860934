#include "absl/strings/str_format.h"
#include "attention/sizing/flashinfer.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kDense[] = "flashinfer_mla", kSparse[] = "flashinfer_sparse_mla";

const KeyTable<FlashInferMlaKeys>& DenseTable() {
  using K = FlashInferMlaKeys;
  static const KeyTable<K> table = {
      Count("dcp", &K::dcp, 1, 4096, "ranks that share a sequence's cache; above 1 needs the lse"),
      Switch("lse", &K::lse, "the log-sum-exp is wanted"),
  };
  return table;
}

const KeyTable<FlashInferSparseMlaKeys>& SparseTable() {
  using K = FlashInferSparseMlaKeys;
  static const KeyTable<K> table = {
      Required("heads", &K::heads, 1, 4096, "query heads of this rank (H)"),
      Required("max_num_batched_tokens", &K::max_num_batched_tokens, 1, kMostCount,
               "tokens of one pass (T)"),
      Count("dcp", &K::dcp, 1, 4096, "ranks that share a sequence's cache (W)"),
      Bytes("base_bytes", &K::base_bytes, 1, "the generic buffer"),
  };
  return table;
}

}  // namespace

absl::StatusOr<std::vector<DeclaredRequest>> FlashInferMlaRequests(const FlashInferMlaKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kDense, DenseTable(), keys));
  const bool lse = keys.lse != 0 || keys.dcp > 1;
  return RequestList()
      .Add("workspace", {lse ? 256 : 128, static_cast<std::int64_t>(kMiB)},
           lse ? "split results and log-sum-exp" : "split results")
      .Take();
}

absl::StatusOr<std::vector<DeclaredRequest>> FlashInferSparseMlaRequests(
    const FlashInferSparseMlaKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kSparse, SparseTable(), keys));
  RequestList list;
  list.Add("workspace", {keys.base_bytes}, "generic scratch of the generated kernels");
  if (keys.dcp > 1) {
    // 8 B a row and head of 256: the kernel strides its statistics by whole tiles.
    list.Add("lse_slab", {8, keys.heads, keys.dcp, keys.max_num_batched_tokens, 256},
             absl::StrFormat("8 B * (%d * %d heads) * %d tokens * 256", keys.heads, keys.dcp,
                             keys.max_num_batched_tokens));
    list.Add("lse_guard", {static_cast<std::int64_t>(kMiB)}, "behind the slab");
  }
  return list.Take();
}

SizingRule FlashInferMlaRule() {
  return MakeRequestRule({.name = kDense,
                          .doc = "FlashInfer dense MLA decode",
                          .formula = "workspace 128 MiB; 256 MiB with lse or dcp > 1."},
                         DenseTable(), &FlashInferMlaRequests);
}

SizingRule FlashInferSparseMlaRule() {
  return MakeRequestRule(
      {.name = kSparse,
       .doc = "FlashInfer sparse MLA",
       .formula =
           "workspace base_bytes; with W > 1 also lse_slab 8 * (H * W) * T * 256 and 1 MiB."},
      SparseTable(), &FlashInferSparseMlaRequests);
}

}  // namespace holdfast
