// Verifies that no plan needs more slots than the split-KV bound counts, that the bound is met, and
// that what a backend declares holds every shape it may be given.
#include "attention/sizing/split_kv.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

constexpr std::int64_t kRequestCost = 5;  // of starting a request, in key blocks

// Pieces that need a slot when requests of so many key blocks are dealt to `parts` in order, each
// part taking as much as an even share.
std::int64_t SlotsOfPlan(const std::vector<std::int64_t>& blocks, std::int64_t parts) {
  std::int64_t work = 0;
  for (const std::int64_t b : blocks) work += b + kRequestCost;
  const std::int64_t share = (work + parts - 1) / parts + kRequestCost;
  std::vector<std::int64_t> pieces(blocks.size(), 0);
  std::size_t request = 0;
  std::int64_t done = 0;
  for (std::int64_t part = 0; part < parts && request < blocks.size(); ++part) {
    std::int64_t left = share;
    while (request < blocks.size() && left > 0) {
      const std::int64_t rest = blocks[request] - done;
      if (left < rest + kRequestCost && left <= kRequestCost) break;
      ++pieces[request];
      if (left >= rest + kRequestCost) {
        left -= rest + kRequestCost;
        ++request, done = 0;
      } else {
        done += left - kRequestCost;
        left = 0;
      }
    }
  }
  EXPECT_EQ(request, blocks.size()) << "the parts do not hold the work";
  std::int64_t slots = 0;
  for (const std::int64_t p : pieces) slots += p > 1 ? p : 0;
  return slots;
}

std::uint64_t DeclaredSlots(std::int64_t batch, std::int64_t parts) {
  const auto requests =
      SplitKvRequests({.heads = 1, .max_num_seqs = batch, .sms = parts, .width = 1, .pad_rows = 0});
  EXPECT_OK(requests);
  return requests.ok() && !requests->empty() ? requests->front().bytes / 4 : 0;
}

TEST(SplitKv, RandomPlansNeverExceedTheBound) {
  std::mt19937 random(7);
  const auto draw = [&random](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int i = 0; i < 1500; ++i) {
    const std::int64_t parts = draw(1, 132), batch = draw(1, 321);
    std::vector<std::int64_t> blocks;
    for (std::int64_t b = 0; b < batch; ++b) blocks.push_back(draw(0, 1 << draw(0, 11)));
    const std::int64_t slots = SlotsOfPlan(blocks, parts);
    EXPECT_LE(slots, static_cast<std::int64_t>(DeclaredSlots(batch, parts)));
    EXPECT_LE(slots, 2 * (parts - 1));
  }
}

TEST(SplitKv, TheBoundIsMet) {
  // One long request over every part: P pieces, P - 1 cuts.
  EXPECT_EQ(SlotsOfPlan({100'000}, 132), 132);
  EXPECT_EQ(DeclaredSlots(1, 132), 132u);
  // Three requests over two parts: one is cut, into two pieces.
  EXPECT_EQ(SlotsOfPlan({100, 100, 100}, 2), 2);
  EXPECT_EQ(DeclaredSlots(3, 2), 2u);
  EXPECT_EQ(DeclaredSlots(128, 1), 0u);
}

// Field case 20: what is declared before the lock holds every later step, whatever is cached.
TEST(SplitKv, FieldCase20WorstCaseHoldsEveryShape) {
  for (const std::int64_t heads : {1, 8, 16, 63, 64, 65, 96, 128}) {
    for (const std::int64_t sms : {1, 7, 78, 132, 148}) {
      ASSERT_OK_AND_ASSIGN(const auto worst, SplitKvWorstCase(heads, 8, sms, 512));
      const std::uint64_t declared = *TotalBytes(worst);
      std::uint64_t most = 0;
      for (std::int64_t q = 1; q <= 8; ++q) {
        for (const std::int64_t batch : {0, 1, 2, 64, 4096}) {
          ASSERT_OK_AND_ASSIGN(
              const auto shape,
              SplitKvRequests({.heads = heads, .query_len = q, .max_num_seqs = batch, .sms = sms}));
          most = std::max(most, *TotalBytes(shape));
        }
      }
      EXPECT_EQ(declared, most) << heads << " heads, " << sms << " multiprocessors";
    }
  }
}

}  // namespace
}  // namespace holdfast
