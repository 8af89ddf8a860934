#include "attention/sizing/flashmla_sparse.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "flashmla_sparse";
constexpr std::int64_t kKeyWidth = 576, kValueWidth = 512;

const KeyTable<FlashMlaSparseKeys>& Table() {
  using K = FlashMlaSparseKeys;
  static const KeyTable<K> table = {
      Required("heads", &K::heads, 1, 128, "query heads of this rank (H)"),
      Required("max_num_batched_tokens", &K::max_num_batched_tokens, 1, kMostCount,
               "tokens of one pass (T)"),
      Required("max_model_len", &K::max_model_len, 1, kMostCount,
               "longest sequence, in tokens (L)"),
      Switch("quantized", &K::quantized, "fp8 cache; off: bf16"),
      Switch("hisparse", &K::hisparse, "top-k served from host memory"),
      Count("pcp", &K::pcp, 1, 4096, "ranks that share a prefill's context"),
      Count("dcp", &K::dcp, 1, 4096, "ranks that share a sequence's cache (W)"),
      Count("prefill_factor", &K::prefill_factor, 1, 1024,
            "rows of context that prefill groups may gather, in max_model_len (F)"),
      Switch("path_gating", &K::path_gating, "reserve only for the path that is taken"),
      Choice("arch", &K::arch, {GpuArchName(GpuArch::kSm90), GpuArchName(GpuArch::kSm100)},
             "decides the heads that prefill pads to"),
      Switch("staging", &K::staging, "count the staging of padded rows (older versions did not)"),
  };
  return table;
}

AttentionConfig ConfigOf(const FlashMlaSparseKeys& keys) {
  return {.max_batched_tokens = keys.max_num_batched_tokens,
          .max_model_len = keys.max_model_len,
          .heads = keys.heads,
          .quantized = keys.quantized != 0,
          .prefill_ranks = keys.pcp,
          .decode_ranks = keys.dcp,
          .hisparse = keys.hisparse != 0,
          .arch = static_cast<GpuArch>(keys.arch),
          .prefill_factor = keys.prefill_factor,
          .path_gating = keys.path_gating != 0};
}

// The fp8 decode kernel takes exactly 64 or 128 heads, bf16 prefill a multiple of 64 (sm90) or 128.
std::int64_t PaddedHeads(const AttentionConfig& config) {
  const std::int64_t decode = config.heads <= 64 ? 64 : 128;
  const std::int64_t prefill = RoundUp(config.heads, config.arch == GpuArch::kSm90 ? 64 : 128);
  if (!config.quantized) return prefill;
  const bool prefills = !config.path_gating || kSparseBf16Prefill.Selects(config);
  return prefills ? std::max(decode, prefill) : decode;
}

}  // namespace

absl::StatusOr<std::vector<DeclaredRequest>> SparsePrefillContext(const AttentionConfig& c) {
  const bool shared = c.prefill_ranks > 1 && c.decode_ranks > 1;
  const std::int64_t rows = c.prefill_factor * c.max_model_len;
  const std::int64_t local_rows = shared ? rows / c.decode_ranks : rows;
  RequestList list;
  if (c.path_gating && !kSparseBf16Prefill.Selects(c)) return list.Take();
  if (c.quantized) {
    list.Add("prefill_context", {local_rows, kKeyWidth, kBF16Bytes},
             absl::StrFormat("(%d, %d) bf16: fp8 context of a prefill group, dequantised",
                             local_rows, kKeyWidth));
  }
  if (shared) {
    list.Add("gathered_context", {rows, kKeyWidth, kBF16Bytes},
             absl::StrFormat("(%d, %d) bf16: the context of all ranks", rows, kKeyWidth));
  }
  return list.Take();
}

absl::StatusOr<std::vector<DeclaredRequest>> FlashMlaSparseRequests(
    const FlashMlaSparseKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  const AttentionConfig config = ConfigOf(keys);
  const std::int64_t tokens = config.max_batched_tokens, heads = config.heads;
  const std::int64_t padded = PaddedHeads(config);
  // Over a bf16 cache the rows are concatenated at their padded place at once.
  const std::int64_t concat = config.quantized ? heads : padded;
  RequestList list;
  list.Add("q_concat", {tokens, concat, kKeyWidth, kBF16Bytes},
           absl::StrFormat("(%d, %d, %d) bf16: latent and rope parts of the queries, joined",
                           tokens, concat, kKeyWidth));
  if (keys.staging != 0) {
    if (config.quantized) {
      list.Add("q_padded", {tokens, padded, kKeyWidth, kBF16Bytes},
               absl::StrFormat("(%d, %d, %d) bf16: queries at the heads the kernel takes", tokens,
                               padded, kKeyWidth));
    }
    list.Add(
        "out_padded", {tokens, padded, kValueWidth, kBF16Bytes},
        absl::StrFormat("(%d, %d, %d) bf16: what the kernel writes", tokens, padded, kValueWidth));
    list.Add(
        "out_compact", {tokens, heads, kValueWidth, kBF16Bytes},
        absl::StrFormat("(%d, %d, %d) bf16: the real heads of it", tokens, heads, kValueWidth));
  }
  return list.Add(SparsePrefillContext(config)).Take();
}

SizingRule FlashMlaSparseRule() {
  return MakeRequestRule(
      {.name = kName,
       .doc = "FlashMLA sparse attention: query and output staging, and bf16 prefill context",
       .formula =
           "q_concat (T, H, 576) + q_padded (T, P, 576) + out_padded (T, P, 512) +\n"
           "out_compact (T, H, 512), all bf16, P = H as the kernels pad it (bf16 cache:\n"
           "q_concat has P heads and there is no q_padded);\n"
           "prefill_context (F * L, 576) bf16, with pcp > 1 and dcp > 1 (F * L / W, 576) and\n"
           "gathered_context (F * L, 576). The context is read by the bf16_prefill path only;\n"
           "fp8_mixed_batch is taken if the cache is fp8, H < 32, no hisparse, and not both\n"
           "pcp > 1 and dcp > 1."},
      Table(), &FlashMlaSparseRequests);
}

}  // namespace holdfast
