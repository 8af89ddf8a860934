#include "attention/declare/mla_windowed.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "attention/check_field.h"
#include "attention/declare/config_check.h"
#include "attention/sizing/deepseek_v4.h"
#include "attention/sizing/kv_pages.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "mla_windowed";
constexpr std::int64_t kWidth = 512;
constexpr std::int64_t kListMultiple = 64;  // index lists are padded to this, each by itself
constexpr std::int64_t kV4Layout = 1;       // deepseek_v4 in QuantizedKvLayouts()

// Layout and bytes of a page of `rows` rows.
absl::Status FillPage(const AttentionConfig& config, std::int64_t rows, KvPageSpec& pages) {
  pages.layout = config.quantized ? "deepseek_v4" : absl::StrCat("mla_", DTypeName(config.type));
  const absl::StatusOr<std::vector<DeclaredRequest>> parts =
      config.quantized
          ? Fp8KvPageRequests({.layout = kV4Layout, .block_size = rows})
          : KvPageRequests({.block_size = rows,
                            .key_dim = kWidth,
                            .element_bytes = static_cast<std::int64_t>(DTypeBytes(config.type))});
  HOLDFAST_RETURN_IF_ERROR(parts.status());
  HOLDFAST_ASSIGN_OR_RETURN(pages.page_bytes, TotalBytes(*parts));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AttentionDeclaration> DeclareMlaWindowed(const AttentionConfig& config) {
  // No kernel of this kind is here yet whose side effects a profiling run could bring out.
  AttentionDeclaration d{.backend = kName, .profiling = ProfilingSupport::kUnsupported};
  HOLDFAST_RETURN_IF_ERROR(CheckConfig(kName, config));
  HOLDFAST_RETURN_IF_ERROR(RefuseContextRanks(kName, config));
  HOLDFAST_ASSIGN_OR_RETURN(const AttentionPath path,
                            ChoosePath(kName, {kWindowOnly, kWindowAndCompressed}, config));
  d.path = path.name();
  const bool compressed = !config.path_gating || kWindowAndCompressed.Selects(config);
  const std::int64_t ratio = std::max<std::int64_t>(config.compress_ratio, 1);
  const std::int64_t extra = compressed ? std::min(config.topk, config.max_model_len / ratio) : 0;
  HOLDFAST_ASSIGN_OR_RETURN(
      d.scratch, DeepSeekV4Requests({.kernel = kV4FlashMla,
                                     .max_model_len = config.max_model_len,
                                     .max_num_batched_tokens = config.max_batched_tokens,
                                     .window = config.window,
                                     .compress_ratio = config.compress_ratio,
                                     .combined_topk = RoundUp(config.window, kListMultiple) +
                                                      RoundUp(extra, kListMultiple)}));
  d.kv = {.kind = KvKind::kWindow, .page_tokens = config.page_tokens, .window = config.window};
  HOLDFAST_RETURN_IF_ERROR(FillPage(config, config.page_tokens, d.kv));
  if (kWindowAndCompressed.Selects(config)) {
    if (config.page_tokens % ratio != 0) {
      return RefuseField(kName, "page_tokens", absl::StrCat(config.page_tokens),
                         absl::StrCat("a multiple of compress_ratio, ", ratio));
    }
    d.extra_kv = {.kind = KvKind::kFull, .page_tokens = config.page_tokens};
    HOLDFAST_RETURN_IF_ERROR(FillPage(config, config.page_tokens / ratio, d.extra_kv));
  }
  return d;
}

}  // namespace holdfast
