// Verifies: block tables of groups: where each group's part of a row begins, how many blocks a
// sequence takes, and that a row holds them in order with null pages behind.
#include "runtime/kv_tables.h"

#include "gtest/gtest.h"

namespace holdfast {
namespace {

KvGroups Groups(const std::vector<KvPageSpec>& pages) {
  KvGroups groups;
  for (std::size_t i = 0; i < pages.size(); ++i) groups.groups.push_back({pages[i], {i}});
  return groups;
}

TEST(KvTablesTest, PlainTablesHaveAnEntryAPageOfTokens) {
  const KvTables tables = KvTables::OfTokens(64, 256);
  EXPECT_TRUE(tables.plain());
  EXPECT_EQ(tables.stride(), 4);
  EXPECT_EQ(tables.Blocks(1), 1);
  EXPECT_EQ(tables.Blocks(64), 1);
  EXPECT_EQ(tables.Blocks(65), 2);
  std::vector<std::int32_t> row(4, -1);
  tables.FillRow({9, 7}, 65, row.data());
  EXPECT_EQ(row, (std::vector<std::int32_t>{9, 7, 0, 0}));
}

TEST(KvTablesTest, PartsOfGroupsLieOneBehindTheOther) {
  // Verifies: full 256 / 64 = 4 entries, window ceil((100 - 1 + 32) / 64) + 1 = 4, state 1; a short
  // sequence takes fewer, at the same places.
  const KvTables tables(Groups({{.kind = KvKind::kFull, .page_tokens = 64},
                                {.kind = KvKind::kWindow, .page_tokens = 64, .window = 100},
                                {.kind = KvKind::kState}}),
                        {.tokens = 256, .max_batched_tokens = 32});
  EXPECT_FALSE(tables.plain());
  ASSERT_EQ(tables.parts().size(), 3u);
  EXPECT_EQ(tables.parts()[1].first, 4);
  EXPECT_EQ(tables.parts()[2].first, 8);
  EXPECT_EQ(tables.stride(), 9);
  EXPECT_EQ(tables.Blocks(256), 9);
  EXPECT_EQ(tables.Blocks(65), 2 + 3 + 1);
  std::vector<std::int32_t> row(9, -1);
  tables.FillRow({1, 2, 3, 4, 5, 6}, 65, row.data());
  EXPECT_EQ(row, (std::vector<std::int32_t>{1, 2, 0, 0, 3, 4, 5, 0, 6}));
}

TEST(KvTablesTest, RanksThatShareASequenceHoldAPartOfItsPages) {
  const KvTables tables(
      Groups({{.kind = KvKind::kFull, .page_tokens = 64, .context_ranks = 4}}), {.tokens = 1024});
  EXPECT_FALSE(tables.plain());
  EXPECT_EQ(tables.stride(), 4);
}

}  // namespace
}  // namespace holdfast
