// Verifies the bucket rule against the field's vectors, lists of the user's own, and what fits
// where.
#include "graphs/buckets.h"

#include <algorithm>
#include <limits>

#include "gmock/gmock.h"
#include "graphs/graph_key.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;

std::vector<int> DefaultSizes(int limit) {
  const absl::StatusOr<BucketList> list = BucketList::Default(limit);
  EXPECT_OK(list);
  return list.ok() ? list->sizes() : std::vector<int>{};
}

TEST(Buckets, FieldVectorsOfTheDefaultRule) {
  const std::vector<int> sizes = DefaultSizes(512);
  EXPECT_EQ(sizes.size(), 51u);
  EXPECT_EQ(std::count_if(sizes.begin(), sizes.end(), [](int n) { return n <= 256; }), 35);
  EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end()));
  EXPECT_THAT(DefaultSizes(16), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_EQ(DefaultSizes(96).size(), 15u);
}

// Five draft tokens: rows come in lots of six.
TEST(Buckets, FieldVectorOfLots) {
  ASSERT_OK_AND_ASSIGN(const BucketList list, BucketList::Default(512, 6));
  EXPECT_EQ(list.sizes().size(), 48u);
  EXPECT_THAT(std::vector<int>(list.sizes().begin(), list.sizes().begin() + 10),
              ElementsAre(6, 12, 18, 24, 36, 42, 48, 60, 66, 72));
  EXPECT_EQ(list.Fit(30), 36);
  EXPECT_THAT(BucketList::Default(4, 3)->sizes(), ElementsAre(3));
  EXPECT_THAT(BucketList::Default(6, 6)->sizes(), ElementsAre(6));
  for (int multiple : {0, -1, 5, std::numeric_limits<int>::max()}) {
    EXPECT_THAT(BucketList::Default(4, multiple), IsErrorKind(ErrorKind::kInvalidArgument));
  }
}

TEST(Buckets, FieldVectorsBySequences) {
  const auto sizes = [](int sequences, int speculative, int tokens) {
    const auto list = BucketList::ForSequences(sequences, speculative, tokens);
    EXPECT_OK(list);
    return list.ok() ? list->sizes() : std::vector<int>{};
  };
  EXPECT_THAT(sizes(8, 0, 8192), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_EQ(sizes(256, 0, 8192).size(), 51u);
  EXPECT_EQ(sizes(256, 0, 96).size(), 15u);
  const std::vector<int> six = sizes(256, 5, 8192);
  EXPECT_EQ(six.size(), 48u);
  EXPECT_THAT(std::vector<int>(six.begin(), six.begin() + 10),
              ElementsAre(6, 12, 18, 24, 36, 42, 48, 60, 66, 72));
  for (const int size : six) {
    EXPECT_EQ(size % 6, 0);
    EXPECT_LE(size, 512);
  }
  EXPECT_EQ(sizes(std::numeric_limits<int>::max(), 0, 600).back(), 512);
  EXPECT_THAT(BucketList::ForSequences(0, 0, 1), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(BucketList::ForSequences(1, -1, 1), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(BucketList::ForSequences(1, 0, 0), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(BucketList::ForSequences(1, 7, 4), IsErrorKind(ErrorKind::kInvalidArgument))
      << "one sequence does not fit";
  EXPECT_THAT(BucketList::ForSequences(1, std::numeric_limits<int>::max(), 4),
              IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST(Buckets, FieldCase57DefaultNeverExceedsTheMaximumAndHoldsIt) {
  EXPECT_THAT(DefaultSizes(4), ElementsAre(1, 2, 4));
  EXPECT_THAT(DefaultSizes(700), AllOf(Each(Le(700)), Contains(700), Contains(688)));
  EXPECT_THAT(DefaultSizes(1), ElementsAre(1));
  EXPECT_THAT(DefaultSizes(3), ElementsAre(1, 2, 3));
  for (int limit = 1; limit <= 600; ++limit) {
    const std::vector<int> sizes = DefaultSizes(limit);
    EXPECT_EQ(sizes.back(), limit);
    EXPECT_EQ(std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<int>()),
              sizes.end());
  }
}

TEST(Buckets, DefaultRefusesImpossibleLimits) {
  for (int limit : {0, -1, std::numeric_limits<int>::min(), kLargestBucket + 1,
                    std::numeric_limits<int>::max()}) {
    EXPECT_THAT(BucketList::Default(limit), IsErrorKind(ErrorKind::kInvalidArgument)) << limit;
  }
}

TEST(Buckets, FitIsTheSmallestThatHolds) {
  ASSERT_OK_AND_ASSIGN(const BucketList list, BucketList::Default(40));
  for (int n = 1; n <= 40; ++n) {
    const std::vector<int>& sizes = list.sizes();
    EXPECT_EQ(list.Fit(n), *std::lower_bound(sizes.begin(), sizes.end(), n)) << n;
  }
  for (int n : {0, -1, std::numeric_limits<int>::min(), 41, std::numeric_limits<int>::max()}) {
    EXPECT_EQ(list.Fit(n), std::nullopt) << n;
  }
}

TEST(Buckets, OwnListIsSortedAndKept) {
  ASSERT_OK_AND_ASSIGN(const BucketList list, BucketList::Of({8, 1, 3}, 10));
  EXPECT_THAT(list.sizes(), ElementsAre(1, 3, 8));
  EXPECT_EQ(list.largest(), 8);
  EXPECT_EQ(list.Fit(4), 8);
  EXPECT_EQ(list.Fit(9), std::nullopt);
}

TEST(Buckets, OwnListRefusesBadEntriesByName) {
  struct Case {
    std::vector<int> sizes;
    const char* named;
  };
  for (const Case& c : {Case{{}, "empty"}, Case{{1, 0}, "bucket 0"}, Case{{-2, 1}, "bucket -2"},
                        Case{{1, 4, 4}, "bucket 4"}, Case{{1, 11}, "bucket 11"}}) {
    const absl::StatusOr<BucketList> list = BucketList::Of(c.sizes, 10);
    ASSERT_THAT(list, IsErrorKind(ErrorKind::kInvalidArgument)) << c.named;
    EXPECT_THAT(std::string(list.status().message()), HasSubstr(c.named));
  }
  EXPECT_THAT(BucketList::Of({1}, 0), IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST(GraphKey, NamesSayWhatIsNotTheDefault) {
  EXPECT_EQ((GraphKey{.phase = Phase::kDecode, .size = 8}.Name()), "decode/8");
  EXPECT_EQ((GraphKey{.phase = Phase::kPrefill, .size = 64}.Name()), "prefill/64");
  EXPECT_EQ(
      (GraphKey{.phase = Phase::kDecode, .size = 8, .query_length = 2, .variant = "v"}.Name()),
      "decode/8/q2/v");
}

}  // namespace
}  // namespace holdfast
