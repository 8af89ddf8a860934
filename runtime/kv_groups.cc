#include "runtime/kv_groups.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "attention/sizing/requests.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

using Layers = std::vector<std::size_t>;

// Layers by what decides which tokens a page holds, in order of first appearance.
std::vector<Layers> Tables(const std::vector<KvPageSpec>& caches) {
  std::map<std::tuple<KvKind, std::int64_t, std::int64_t, std::int64_t>, std::size_t> index;
  std::vector<Layers> tables;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const KvPageSpec& c = caches[i];
    const auto [found, added] =
        index.try_emplace({c.kind, c.page_tokens, c.window, c.context_ranks}, tables.size());
    if (added) tables.emplace_back();
    tables[found->second].push_back(i);
  }
  return tables;
}

absl::Status CheckCaches(const std::vector<KvPageSpec>& caches) {
  const auto refuse = [](const std::string& object, const char* why) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = object}, why);
  };
  if (caches.empty()) return refuse("KV groups", "no layer keeps a cache");
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const std::string object = absl::StrCat("cache ", i, " (", caches[i].layout, ")");
    if (caches[i].kind == KvKind::kNone) return refuse(object, "keeps nothing");
    if (caches[i].page_bytes == 0) return refuse(object, "has pages of no bytes");
    if (caches[i].kind != KvKind::kState && caches[i].page_tokens < 1) {
      return refuse(object, "has pages of no tokens");
    }
    if (caches[i].context_ranks < 1) return refuse(object, "is shared by no rank");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<KvPageSpec> CachesOf(const std::vector<AttentionDeclaration>& layers) {
  std::vector<KvPageSpec> caches;
  for (const AttentionDeclaration& layer : layers) {
    for (const KvPageSpec& cache : {layer.kv, layer.extra_kv}) {
      if (cache.kind != KvKind::kNone) caches.push_back(cache);
    }
  }
  return caches;
}

absl::StatusOr<KvGroups> GroupCaches(const std::vector<KvPageSpec>& caches) {
  HOLDFAST_RETURN_IF_ERROR(CheckCaches(caches));
  const std::vector<Layers> tables = Tables(caches);
  KvGroups result;
  std::uint64_t used = 0, largest = 0;
  for (const KvPageSpec& cache : caches) {
    HOLDFAST_ASSIGN_OR_RETURN(used, CheckedAdd(used, cache.page_bytes, "KV block"));
    largest = std::max(largest, cache.page_bytes);
  }
  if (tables.size() == 1) {
    result.groups.push_back({caches.front(), tables.front()});
    result.group_layers = static_cast<std::int64_t>(caches.size());
    result.block_bytes = used;
    return result;
  }
  std::size_t slots = caches.size();
  for (const Layers& table : tables) slots = std::min(slots, table.size());
  for (const Layers& table : tables) {
    for (std::size_t first = 0; first < table.size(); first += slots) {
      const std::size_t end = std::min(first + slots, table.size());
      result.groups.push_back(
          {caches[table[first]], Layers(table.begin() + static_cast<std::ptrdiff_t>(first),
                                        table.begin() + static_cast<std::ptrdiff_t>(end))});
    }
  }
  result.group_layers = static_cast<std::int64_t>(slots);
  HOLDFAST_ASSIGN_OR_RETURN(result.block_bytes, CheckedMultiply(largest, slots, "KV block"));
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::uint64_t all,
      CheckedMultiply(result.block_bytes, result.groups.size(), "KV blocks of all groups"));
  result.padding_bytes = all - used;
  return result;
}

std::int64_t BlocksOfSequence(const KvGroups& groups, const SequenceLimits& limits) {
  std::int64_t blocks = 0;
  for (const KvGroup& group : groups.groups) blocks += PagesOfSequence(group.page, limits);
  return blocks;
}

absl::Status CheckOneSequenceFits(std::int64_t blocks, std::int64_t sequence_blocks) {
  const std::int64_t need = sequence_blocks + kReservedBlocks;
  if (blocks >= need) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kOutOfMemory,
                    .object = "KV cache",
                    .need = static_cast<std::uint64_t>(need),
                    .have = static_cast<std::uint64_t>(std::max<std::int64_t>(blocks, 0))},
                   absl::StrCat("one sequence of the maximum length takes ", sequence_blocks,
                                " blocks and the null block ", kReservedBlocks, "; ",
                                need - std::max<std::int64_t>(blocks, 0), " blocks are missing"));
}

std::int64_t LongestSequence(const KvGroups& groups, std::int64_t blocks, SequenceLimits limits) {
  const auto fits = [&](std::int64_t tokens) {
    limits.tokens = tokens;
    return BlocksOfSequence(groups, limits) + kReservedBlocks <= blocks;
  };
  // Blocks grow with tokens: the longest that fits lies between `low` (fits) and `high`.
  std::int64_t low = 0, high = limits.tokens;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace holdfast
