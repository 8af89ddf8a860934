#include "runtime/kv_tables.h"

#include <algorithm>

namespace holdfast {

KvTables::KvTables(const KvGroups& groups, const SequenceLimits& limits) : limits_(limits) {
  for (const KvGroup& group : groups.groups) pages_.push_back(group.page);
  for (std::size_t g = 0; g < pages_.size(); ++g) {
    const std::int32_t entries = BlocksOf(g, static_cast<std::int32_t>(limits.tokens));
    parts_.push_back({.first = stride_, .entries = entries});
    stride_ += entries;
  }
}

KvTables KvTables::OfTokens(std::int32_t page_tokens, std::int32_t longest) {
  KvGroups groups;
  groups.groups.push_back(
      {.page = {.kind = KvKind::kFull, .page_tokens = page_tokens}, .layers = {0}});
  return KvTables(groups, {.tokens = longest});
}

std::int32_t KvTables::BlocksOf(std::size_t group, std::int32_t tokens) const {
  SequenceLimits limits = limits_;
  limits.tokens = tokens;
  return static_cast<std::int32_t>(PagesOfSequence(pages_[group], limits));
}

std::int32_t KvTables::Blocks(std::int32_t tokens) const {
  std::int32_t blocks = 0;
  for (std::size_t g = 0; g < pages_.size(); ++g) blocks += BlocksOf(g, tokens);
  return blocks;
}

void KvTables::FillRow(const std::vector<std::int32_t>& blocks, std::int32_t tokens,
                       std::int32_t* row) const {
  std::fill_n(row, stride_, 0);
  auto next = blocks.begin();
  for (std::size_t g = 0; g < pages_.size(); ++g) {
    const std::int32_t count = BlocksOf(g, tokens);
    std::copy_n(next, count, row + parts_[g].first);
    next += count;
  }
}

}  // namespace holdfast
