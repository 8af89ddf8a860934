// The block table of a sequence when groups of layers share the pool: one part for each group, one
// behind the other in the sequence's row.
#ifndef HOLDFAST_RUNTIME_KV_TABLES_H_
#define HOLDFAST_RUNTIME_KV_TABLES_H_

#include <cstdint>
#include <vector>

#include "runtime/kv_groups.h"

namespace holdfast {

class KvTables {
 public:
  KvTables() = default;
  // `limits` are those of the longest sequence.
  KvTables(const KvGroups& groups, const SequenceLimits& limits);
  // One table of every token, `page_tokens` a page.
  static KvTables OfTokens(std::int32_t page_tokens, std::int32_t longest);

  struct Part {
    std::int32_t first = 0;  // entry of the row
    // Entries of the longest sequence. A window goes round in them: page p is entry p % entries.
    std::int32_t entries = 0;
  };
  const std::vector<Part>& parts() const { return parts_; }  // [group]
  std::int32_t stride() const { return stride_; }            // entries of a row
  // One table with an entry for each page of tokens: page p of a sequence is entry p.
  bool plain() const {
    return pages_.size() == 1 && pages_[0].kind == KvKind::kFull && pages_[0].context_ranks == 1;
  }

  // Blocks that a sequence of `tokens` takes, in all groups; at most stride().
  std::int32_t Blocks(std::int32_t tokens) const;
  // Lays the Blocks(tokens) blocks of a sequence out as its row, of stride() entries. What the
  // sequence does not have is the null page.
  void FillRow(const std::vector<std::int32_t>& blocks, std::int32_t tokens,
               std::int32_t* row) const;

 private:
  std::int32_t BlocksOf(std::size_t group, std::int32_t tokens) const;

  std::vector<KvPageSpec> pages_;  // [group]
  std::vector<Part> parts_;
  SequenceLimits limits_;
  std::int32_t stride_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KV_TABLES_H_
