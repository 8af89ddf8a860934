#include "runtime/synthetic_cache_map.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr std::int64_t kWordBytes = 4;
constexpr std::int64_t kRowHeaderBytes = 2 * kWordBytes;

absl::Status Unsupported(const DeclaredLayer& layer, const SyntheticCache& cache,
                         const std::string& why) {
  return MakeError({.kind = ErrorKind::kUnsupported, .object = layer.backend()},
                   absl::StrCat("a page of ", cache.page.page_bytes, " B (", cache.page.layout,
                                ") ", why));
}

// Rows of a page and of a token, and what is left of the page.
absl::Status FillRows(const DeclaredLayer& layer, SyntheticCache& cache) {
  SyntheticCacheLayout& layout = cache.layout;
  const auto page_bytes = static_cast<std::int64_t>(cache.page.page_bytes);
  if (page_bytes % kWordBytes != 0) {
    return Unsupported(layer, cache, "is no multiple of 4 B");
  }
  if (page_bytes > INT32_MAX) return Unsupported(layer, cache, "is above 2 GiB");
  if (cache.page.kind == KvKind::kState) {
    layout.row_bytes = static_cast<std::int32_t>(page_bytes);
    layout.rows_per_page = 1;
    if (page_bytes < kSyntheticStateHeader * kWordBytes) {
      return Unsupported(layer, cache, "does not hold a state's header");
    }
    return absl::OkStatus();
  }
  const std::int64_t ratio =
      cache.extra ? std::max<std::int64_t>(layer.config().compress_ratio, 1) : 1;
  const std::int64_t rows = cache.page.page_tokens / ratio;
  const std::int64_t row_bytes = page_bytes / rows / kWordBytes * kWordBytes;
  if (row_bytes < kRowHeaderBytes) {
    return Unsupported(layer, cache, "does not hold a header of 8 B a row");
  }
  layout.rows_per_page = static_cast<std::int32_t>(rows);
  layout.row_bytes = static_cast<std::int32_t>(row_bytes);
  layout.tail_bytes = static_cast<std::int32_t>(page_bytes - rows * row_bytes);
  // Of a sequence that is spread over ranks, this one holds each ranks-th token.
  layout.tokens_per_row = static_cast<std::int32_t>(ratio * cache.page.context_ranks);
  layout.window = static_cast<std::int32_t>(std::min<std::int64_t>(cache.page.window, INT32_MAX));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SyntheticCacheMap> MapCaches(const std::vector<DeclaredLayer>& layers) {
  SyntheticCacheMap map;
  std::vector<AttentionDeclaration> declarations;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const AttentionDeclaration& d = layers[i].declaration();
    declarations.push_back(d);
    for (const bool extra : {false, true}) {
      SyntheticCache cache{.layer = i, .extra = extra, .page = extra ? d.extra_kv : d.kv};
      if (cache.page.kind == KvKind::kNone) continue;
      HOLDFAST_RETURN_IF_ERROR(FillRows(layers[i], cache));
      map.caches.push_back(std::move(cache));
    }
  }
  HOLDFAST_ASSIGN_OR_RETURN(map.groups, GroupCaches(CachesOf(declarations)));
  const AttentionConfig& config = layers.front().config();
  map.longest = {.tokens = config.max_model_len,
                 .max_batched_tokens = config.max_batched_tokens};
  map.tables = KvTables(map.groups, map.longest);
  const bool one_table = map.groups.groups.size() == 1;
  const std::int64_t slot_bytes =
      static_cast<std::int64_t>(map.groups.block_bytes) / map.groups.group_layers;
  for (std::size_t g = 0; g < map.groups.groups.size(); ++g) {
    std::int64_t offset = 0;
    for (const std::size_t index : map.groups.groups[g].layers) {
      SyntheticCache& cache = map.caches[index];
      cache.layout.block_bytes = static_cast<std::int64_t>(map.groups.block_bytes);
      cache.layout.layer_offset = offset;
      cache.layout.table_stride = map.tables.stride();
      cache.layout.table_first = map.tables.parts()[g].first;
      cache.layout.table_entries = map.tables.parts()[g].entries;
      offset += one_table ? static_cast<std::int64_t>(cache.page.page_bytes) : slot_bytes;
    }
  }
  return map;
}

}  // namespace holdfast
