#include "attention/declare/config_check.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "attention/check_field.h"
#include "attention/sizing/kv_pages.h"
#include "attention/sizing/split_kv.h"
#include "device/error.h"

namespace holdfast {

absl::Status CheckConfig(const std::string& backend, const AttentionConfig& c) {
  const struct {
    const char* name;
    std::int64_t value, least, most;
  } fields[] = {
      {"max_batched_tokens", c.max_batched_tokens, 1, kMostCount},
      {"max_sequences", c.max_sequences, 1, kMostCount},
      {"max_model_len", c.max_model_len, 1, kMostCount},
      {"draft_tokens", c.draft_tokens, 0, 4096},
      {"heads", c.heads, 1, 128},
      {"key_heads", c.key_heads, 0, 128},
      {"latent", c.latent, 8, 512},
      {"rope", c.rope, 0, 64},
      {"topk", c.topk, 1, 1 << 20},
      {"window", c.window, 1, kMostCount},
      {"compress_ratio", c.compress_ratio, 0, kMostCount},
      {"page_tokens", c.page_tokens, 1, 1 << 20},
      {"prefill_ranks", c.prefill_ranks, 1, 4096},
      {"decode_ranks", c.decode_ranks, 1, 4096},
      {"sms", c.sms, 1, 4096},
      {"split_parts", c.split_parts, 1, c.sms},
      {"prefill_factor", c.prefill_factor, 1, 1024},
  };
  for (const auto& field : fields) {
    HOLDFAST_RETURN_IF_ERROR(CheckField(backend, field.name, field.value, field.least, field.most));
  }
  return absl::OkStatus();
}

absl::Status RefuseContextRanks(const std::string& backend, const AttentionConfig& c) {
  if (c.prefill_ranks == 1 && c.decode_ranks == 1) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kUnsupported, .object = backend},
                   absl::StrCat("prefill_ranks is ", c.prefill_ranks, " and decode_ranks is ",
                                c.decode_ranks, "; it keeps the context on one rank"));
}

absl::StatusOr<KvPageSpec> LatentPages(const std::string& backend, const AttentionConfig& c) {
  KvPageSpec pages{.kind = KvKind::kFull,
                   .page_tokens = c.page_tokens,
                   .context_ranks = c.prefill_ranks * c.decode_ranks};
  absl::StatusOr<std::vector<DeclaredRequest>> parts;
  if (c.quantized) {
    if (c.latent != 512 || c.rope != 64) {
      return MakeError({.kind = ErrorKind::kUnsupported, .object = backend},
                       absl::StrCat("latent is ", c.latent, " and rope is ", c.rope,
                                    "; an fp8 cache holds 512 and 64"));
    }
    pages.layout = "fp8_ds_mla";
    parts = Fp8KvPageRequests({.block_size = c.page_tokens});
  } else {
    pages.layout = absl::StrCat("mla_", DTypeName(c.type));
    parts = KvPageRequests({.block_size = c.page_tokens,
                            .key_dim = c.latent + c.rope,
                            .element_bytes = static_cast<std::int64_t>(DTypeBytes(c.type))});
  }
  HOLDFAST_RETURN_IF_ERROR(parts.status());
  HOLDFAST_ASSIGN_OR_RETURN(pages.page_bytes, TotalBytes(*parts));
  return pages;
}

absl::StatusOr<std::vector<DeclaredRequest>> SplitScratch(const AttentionConfig& c) {
  if (c.path_gating && c.split_parts == 1) return std::vector<DeclaredRequest>{};
  const std::int64_t parts = c.split_parts > 1 ? c.split_parts : c.sms;
  return SplitKvWorstCase(c.heads, c.draft_tokens + 1, parts, c.latent);
}

}  // namespace holdfast
