// Verifies how layers share the blocks of the pool, what a sequence takes, and that a start that
// could never serve one sequence is refused with what is missing.
#include "runtime/kv_groups.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const KvPageSpec kFull = {
    .kind = KvKind::kFull, .layout = "full", .page_tokens = 16, .page_bytes = 1000};
const KvPageSpec kWindow = {.kind = KvKind::kWindow,
                            .layout = "window",
                            .page_tokens = 16,
                            .page_bytes = 1000,
                            .window = 64};
const KvPageSpec kState = {.kind = KvKind::kState, .layout = "state", .page_bytes = 900};

std::vector<KvPageSpec> Layers(std::initializer_list<std::pair<int, KvPageSpec>> runs) {
  std::vector<KvPageSpec> layers;
  for (const auto& [count, spec] : runs) {
    layers.insert(layers.end(), static_cast<std::size_t>(count), spec);
  }
  return layers;
}

TEST(KvGroups, UniformLayersMakeOneGroup) {
  ASSERT_OK_AND_ASSIGN(const KvGroups g, GroupCaches(Layers({{61, kFull}})));
  EXPECT_EQ(g.groups.size(), 1u);
  EXPECT_EQ(g.block_bytes, 61'000u);
  EXPECT_EQ(g.padding_bytes, 0u);
  EXPECT_EQ(BlocksOfSequence(g, {.tokens = 1024}), 64);
}

// A sparse model: each layer keeps latent rows and indexer keys of the same tokens.
TEST(KvGroups, PagesOfOtherSizesForTheSameTokensLieTogether) {
  KvPageSpec indexer = kFull;
  indexer.layout = "indexer", indexer.page_bytes = 200;
  ASSERT_OK_AND_ASSIGN(const KvGroups g, GroupCaches(Layers({{3, kFull}, {3, indexer}})));
  EXPECT_EQ(g.groups.size(), 1u);
  EXPECT_EQ(g.block_bytes, 3'600u);
  EXPECT_EQ(g.padding_bytes, 0u);
  EXPECT_EQ(BlocksOfSequence(g, {.tokens = 17}), 2);
}

TEST(KvGroups, HybridLayersAreCutIntoGroupsOfTheSmallestTable) {
  ASSERT_OK_AND_ASSIGN(const KvGroups g, GroupCaches(Layers({{2, kFull}, {5, kWindow}})));
  ASSERT_EQ(g.groups.size(), 4u);  // one of full attention; windows: 2, 2 and 1
  EXPECT_EQ(g.group_layers, 2);
  EXPECT_EQ(g.block_bytes, 2'000u);
  EXPECT_THAT(g.groups[0].layers, ElementsAre(0, 1));
  EXPECT_THAT(g.groups[2].layers, ElementsAre(4, 5));
  EXPECT_THAT(g.groups[3].layers, ElementsAre(6));
  EXPECT_EQ(g.padding_bytes, 1'000u);  // the slot the last group leaves empty
  // 64 blocks of full attention and, three times, ceil((63 + 32) / 16) + 1 of a window.
  EXPECT_EQ(BlocksOfSequence(g, {.tokens = 1024, .max_batched_tokens = 32}), 64 + 3 * 7);
}

TEST(KvGroups, StatesBesideAttentionArePaddedToThePage) {
  ASSERT_OK_AND_ASSIGN(const KvGroups g, GroupCaches(Layers({{1, kFull}, {3, kState}})));
  EXPECT_EQ(g.groups.size(), 4u);
  EXPECT_EQ(g.block_bytes, 1'000u);
  EXPECT_EQ(g.padding_bytes, 300u);
  EXPECT_EQ(BlocksOfSequence(g, {.tokens = 1024, .draft_tokens = 2}), 65 + 3 * 3);
}

TEST(KvGroups, CachesOfDeclarationsComeInOrderAndSkipWhatKeepsNothing) {
  const AttentionDeclaration two{.backend = "two", .kv = kWindow, .extra_kv = kFull};
  const AttentionDeclaration none{.backend = "none"};
  EXPECT_THAT(CachesOf({two, none, {.backend = "state", .kv = kState}}),
              ElementsAre(kWindow, kFull, kState));
}

TEST(KvGroups, ImpossibleCachesAreRefused) {
  EXPECT_THAT(GroupCaches({}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(GroupCaches({KvPageSpec()}), IsErrorKind(ErrorKind::kInvalidArgument));
  KvPageSpec bad = kFull;
  bad.page_bytes = 0;
  EXPECT_THAT(GroupCaches({kFull, bad}), IsErrorKind(ErrorKind::kInvalidArgument));
  bad = kFull;
  bad.page_tokens = 0;
  EXPECT_THAT(GroupCaches({bad}), IsErrorKind(ErrorKind::kInvalidArgument));
  bad = kFull;
  bad.context_ranks = 0;
  EXPECT_THAT(GroupCaches({bad}), IsErrorKind(ErrorKind::kInvalidArgument));
  bad = kFull;
  bad.page_bytes = UINT64_MAX;
  EXPECT_THAT(GroupCaches({bad, bad}), IsErrorKind(ErrorKind::kInvalidArgument));
}

// Field case 28: one block is the null block's, and each of k drafts takes a slot of the last step.
TEST(KvGroups, FieldCase28OneSequenceMustFitBesideTheNullBlock) {
  ASSERT_OK_AND_ASSIGN(const KvGroups g, GroupCaches({kFull}));
  const std::int64_t plain = BlocksOfSequence(g, {.tokens = 1024});
  EXPECT_OK(CheckOneSequenceFits(65, plain));
  const absl::Status short_by_one = CheckOneSequenceFits(64, plain);
  EXPECT_THAT(short_by_one, IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_EQ(GetErrorInfo(short_by_one)->need, 65u);
  EXPECT_EQ(GetErrorInfo(short_by_one)->have, 64u);
  EXPECT_THAT(std::string(short_by_one.message()), HasSubstr("1 blocks are missing"));
  EXPECT_THAT(CheckOneSequenceFits(-5, plain), IsErrorKind(ErrorKind::kOutOfMemory));

  EXPECT_EQ(LongestSequence(g, 64, {.tokens = 1024}), 1008);
  EXPECT_EQ(LongestSequence(g, 65, {.tokens = 1024}), 1024);
  EXPECT_EQ(LongestSequence(g, 1, {.tokens = 1024}), 0);
  EXPECT_EQ(LongestSequence(g, 65, {.tokens = 1024, .draft_tokens = 3}), 1021);
  EXPECT_THAT(CheckOneSequenceFits(65, BlocksOfSequence(g, {.tokens = 1024, .draft_tokens = 3})),
              IsErrorKind(ErrorKind::kOutOfMemory));
}

}  // namespace
}  // namespace holdfast
