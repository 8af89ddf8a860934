#include "attention/sizing/deepseek_v4.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "attention/sizing/requests.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "deepseek_v4";
constexpr std::int64_t kWidth = 512;
constexpr std::int64_t kChunkRequests = 4;   // prefill requests gathered together
constexpr std::int64_t kMostSplitRows = 64;  // more rows fill the device without splits
constexpr std::int64_t kSplitKeys = 64;

const KeyTable<DeepSeekV4Keys>& Table() {
  using K = DeepSeekV4Keys;
  static const KeyTable<K> table = {
      Choice("kernel", &K::kernel, {"flashmla", "flashinfer", "sm120_decode"},
             "prefill of FlashMLA, FlashInfer's buffer, or decode on sm120"),
      Count("max_model_len", &K::max_model_len, 0, kMostCount,
            "longest sequence, in tokens (L); flashmla needs it"),
      Count("max_num_batched_tokens", &K::max_num_batched_tokens, 0, kMostCount,
            "tokens of one pass (T); flashmla and sm120_decode need it"),
      Count("heads", &K::heads, 0, 128, "query heads of this rank (H); sm120_decode needs it"),
      Count("window", &K::window, 1, kMostCount, "keys of the window, the row's own included"),
      Count("compress_ratio", &K::compress_ratio, 0, kMostCount,
            "tokens to one compressed key; 0 or 1: the layer keeps none"),
      Count("combined_topk", &K::combined_topk, 0, kMostCount,
            "entries of a prefill row's index list; 0: the lists are not counted"),
      Count("topk", &K::topk, 0, kMostCount, "keys a decode row reads of the window"),
      Count("extra_topk", &K::extra_topk, 0, kMostCount, "and of the compressed cache"),
  };
  return table;
}

absl::Status Need(const char* key, std::int64_t value) {
  if (value > 0) return absl::OkStatus();
  return RefuseField(kName, key, absl::StrFormat("%d", value),
                     absl::StrFormat("a whole number in [1, %d] for this kernel", kMostCount));
}

absl::StatusOr<std::vector<DeclaredRequest>> FlashMlaPrefill(const DeepSeekV4Keys& keys) {
  HOLDFAST_RETURN_IF_ERROR(Need("max_model_len", keys.max_model_len));
  HOLDFAST_RETURN_IF_ERROR(Need("max_num_batched_tokens", keys.max_num_batched_tokens));
  const std::int64_t length = keys.max_model_len;
  const std::int64_t queries = std::min(length, keys.max_num_batched_tokens);
  const std::int64_t compressed = keys.compress_ratio > 1 ? length / keys.compress_ratio : 0;
  const std::int64_t before = std::min(length - queries, keys.window - 1);
  const std::int64_t rows = compressed + queries + before;
  RequestList list;
  list.Add("kv_chunk", {kChunkRequests, rows, kWidth, kBF16Bytes},
           absl::StrFormat("(%d, %d, %d) bf16: compressed, new and window keys of a chunk",
                           kChunkRequests, rows, kWidth));
  if (keys.combined_topk > 0) {
    list.Add("topk_indices", {queries, keys.combined_topk, kI32Bytes},
             absl::StrFormat("(%d, %d) i32", queries, keys.combined_topk));
    list.Add("topk_lengths", {queries, kI32Bytes}, absl::StrFormat("(%d) i32", queries));
  }
  return list.Take();
}

absl::StatusOr<std::vector<DeclaredRequest>> Sm120Decode(const DeepSeekV4Keys& keys) {
  HOLDFAST_RETURN_IF_ERROR(Need("heads", keys.heads));
  HOLDFAST_RETURN_IF_ERROR(Need("max_num_batched_tokens", keys.max_num_batched_tokens));
  const std::int64_t rows = std::min(keys.max_num_batched_tokens, kMostSplitRows);
  const std::int64_t splits = CeilDiv(keys.topk, kSplitKeys) + CeilDiv(keys.extra_topk, kSplitKeys);
  return RequestList()
      .Add("mid_out", {rows, keys.heads, splits, kWidth, kBF16Bytes},
           absl::StrFormat("(%d, %d, %d splits, %d) bf16", rows, keys.heads, splits, kWidth))
      .Add("mid_lse", {rows, keys.heads, splits, kF32Bytes},
           absl::StrFormat("(%d, %d, %d splits) f32", rows, keys.heads, splits))
      .Take();
}

}  // namespace

absl::StatusOr<std::vector<DeclaredRequest>> DeepSeekV4Requests(const DeepSeekV4Keys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  if (keys.kernel == kV4FlashMla) return FlashMlaPrefill(keys);
  if (keys.kernel == kV4Sm120Decode) return Sm120Decode(keys);
  return RequestList()
      .Add("workspace", {128, static_cast<std::int64_t>(kMiB)}, "FlashInfer's decode scratch")
      .Take();
}

SizingRule DeepSeekV4Rule() {
  return MakeRequestRule(
      {.name = kName,
       .doc = "DeepSeek-V4 attention, by kernel",
       .formula =
           "flashmla: kv_chunk (4, M, 512) bf16, M = L // ratio + q + min(L - q, window - 1),\n"
           "q = min(L, T), no first term for ratio <= 1; with combined_topk the index lists\n"
           "(q, combined_topk) i32 and (q) i32.\n"
           "flashinfer: 128 MiB.\n"
           "sm120_decode: t = min(T, 64), s = ceil(topk / 64) + ceil(extra_topk / 64):\n"
           "mid_out (t, H, s, 512) bf16, mid_lse (t, H, s) f32."},
      Table(), &DeepSeekV4Requests);
}

}  // namespace holdfast
