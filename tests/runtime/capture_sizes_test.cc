// Verifies the sizes that graphs are captured for against the field's vectors.
#include "runtime/capture_sizes.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;

TEST(CaptureSizes, FieldVectors) {
  const auto sizes = [](const CaptureSizeKeys& keys) { return CaptureSizes(keys)->sizes(); };
  const std::vector<int> all = sizes({.max_num_seqs = 1024});
  EXPECT_EQ(all.size(), 51u);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](int n) { return n <= 256; }), 35);
  EXPECT_THAT(sizes({.max_num_seqs = 8}), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_EQ(sizes({.max_num_seqs = 48}).size(), 15u);
  const std::vector<int> drafts = sizes({.max_num_seqs = 1024, .num_speculative_tokens = 5});
  EXPECT_EQ(drafts.size(), 48u);
  EXPECT_THAT(std::vector<int>(drafts.begin(), drafts.begin() + 10),
              ElementsAre(6, 12, 18, 24, 36, 42, 48, 60, 66, 72));
}

// Field case 57: within the limits, whatever they are, and the largest pass has a graph.
TEST(CaptureSizes, FieldCase57NeverBeyondTheLimits) {
  EXPECT_THAT(CaptureSizes({.max_num_seqs = 2})->sizes(), ElementsAre(1, 2, 4));
  EXPECT_THAT(CaptureSizes({.max_num_seqs = 1024, .max_num_batched_tokens = 4})->sizes(),
              ElementsAre(1, 2, 4));
  EXPECT_EQ(CaptureSizes({.max_num_seqs = 350, .most = 1024})->largest(), 700);
  EXPECT_EQ(CaptureSizes({.max_num_seqs = 1'000'000'000'000})->largest(), 512);
}

TEST(CaptureSizes, RanksThatShareTokensGetWholeLots) {
  ASSERT_OK_AND_ASSIGN(
      const BucketList list,
      CaptureSizes({.max_num_seqs = 64, .num_speculative_tokens = 1, .sequence_parallel = 8}));
  for (const int size : list.sizes()) EXPECT_EQ(size % 8, 0) << size;
}

TEST(CaptureSizes, ImpossibleLimitsAreRefused) {
  EXPECT_THAT(CaptureSizes({}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(CaptureSizes({.max_num_seqs = -1}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(
      CaptureSizes({.max_num_seqs = 8, .num_speculative_tokens = 5, .max_num_batched_tokens = 5}),
      IsErrorKind(ErrorKind::kInvalidArgument));
}

}  // namespace
}  // namespace holdfast
