// Verifies that plans are valid (no two live buffers overlap), aligned, near the lower bound, and
// quick.
#include "allocator/scratch_plan.h"

#include <ctime>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

std::uint64_t Rounded(std::uint64_t bytes) {
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

// Brute force over all pairs: the first fault found, empty if the plan holds.
std::string FindFault(const ScratchPlan& plan) {
  const std::size_t n = plan.requests.size();
  if (plan.offsets.size() != n) return "one offset a request";
  for (std::size_t i = 0; i < n; ++i) {
    const ScratchRequest& a = plan.requests[i];
    if (plan.offsets[i] % kScratchAlignment != 0) return a.name + " is misaligned";
    if (a.bytes > 0 && plan.offsets[i] + a.bytes > plan.height) return a.name + " sticks out";
    for (std::size_t j = i + 1; j < n; ++j) {
      const ScratchRequest& b = plan.requests[j];
      if (a.bytes == 0 || b.bytes == 0 || !a.Overlaps(b)) continue;
      if (plan.offsets[i] < plan.offsets[j] + b.bytes &&
          plan.offsets[j] < plan.offsets[i] + a.bytes) {
        return a.name + " overlaps " + b.name;
      }
    }
  }
  return "";
}

// The most rounded bytes alive at any request's first operation.
std::uint64_t BruteForceBound(const std::vector<ScratchRequest>& requests) {
  std::uint64_t most = 0;
  for (const ScratchRequest& at : requests) {
    std::uint64_t alive = 0;
    for (const ScratchRequest& r : requests) {
      if (r.first <= at.first && at.first <= r.last) alive += Rounded(r.bytes);
    }
    most = std::max(most, alive);
  }
  return most;
}

// One transformer-like step: residual and norm live long, attention and feed-forward come and go.
std::vector<ScratchRequest> StepTrace(int layers, std::uint64_t rows) {
  std::vector<ScratchRequest> requests;
  std::uint64_t op = 0;
  const auto add = [&](const char* name, std::uint64_t bytes, std::uint64_t first,
                       std::uint64_t last) {
    requests.push_back({name + std::to_string(requests.size()), bytes * rows, first, last});
  };
  add("hidden", 2048, 0, static_cast<std::uint64_t>(layers) * 10);
  for (int layer = 0; layer < layers; ++layer, op += 10) {
    add("norm", 2048, op, op + 2);
    add("q", 6144, op + 1, op + 4);
    add("latent", 1152, op + 2, op + 3);
    add("partial", 16384, op + 4, op + 5);
    add("heads", 4096, op + 5, op + 6);
    add("gate", 8192, op + 7, op + 8);
    add("up", 8192, op + 7, op + 8);
    add("gemm workspace", 4096, op + 9, op + 9);
  }
  return requests;
}

TEST(ScratchPlanTest, NothingNeedsNothing) {
  ASSERT_OK_AND_ASSIGN(const ScratchPlan plan, PlanScratch({}));
  EXPECT_EQ(plan.height, 0u);
  EXPECT_EQ(plan.lower_bound, 0u);
}

TEST(ScratchPlanTest, DisjointLifetimesShareAndOverlappingOnesDoNot) {
  ASSERT_OK_AND_ASSIGN(const ScratchPlan plan,
                       PlanScratch({{"a", 1000, 0, 1}, {"b", 500, 2, 3}, {"c", 100, 1, 2}}));
  EXPECT_EQ(FindFault(plan), "");
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.height, 1024u + 256u);
  EXPECT_EQ(plan.sum, 1024u + 512u + 256u);
}

// A lifetime includes its last operation: the next buffer of that operation must not share.
TEST(ScratchPlanTest, LastOperationStillCounts) {
  ASSERT_OK_AND_ASSIGN(const ScratchPlan plan, PlanScratch({{"a", 256, 0, 1}, {"b", 256, 1, 2}}));
  EXPECT_EQ(plan.height, 512u);
}

TEST(ScratchPlanTest, StepsReachTheLowerBound) {
  for (const int layers : {1, 4, 61}) {
    for (const std::uint64_t rows : {1, 7, 256}) {
      ASSERT_OK_AND_ASSIGN(const ScratchPlan plan, PlanScratch(StepTrace(layers, rows)));
      EXPECT_EQ(FindFault(plan), "");
      EXPECT_EQ(plan.height, plan.lower_bound) << layers << " layers, " << rows << " rows";
      EXPECT_LT(plan.height, plan.sum);
    }
  }
}

TEST(ScratchPlanTest, RandomPlansAreValidAndNearTheBound) {
  std::mt19937_64 random(20240607);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + random() % 60;
    std::vector<ScratchRequest> requests;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t first = random() % 50;
      requests.push_back({"r" + std::to_string(i), random() % 5000, first, first + random() % 20});
    }
    const std::uint64_t bound = BruteForceBound(requests);
    ASSERT_OK_AND_ASSIGN(const ScratchPlan plan, PlanScratch(std::move(requests)));
    EXPECT_EQ(FindFault(plan), "") << "round " << round;
    EXPECT_EQ(plan.lower_bound, bound) << "round " << round;
    EXPECT_GE(plan.height, bound);
    EXPECT_LE(plan.height * 4, bound * 5) << "round " << round;
  }
}

// Where greedy orders stay above the bound the search goes on. Three of the five sizes of a small
// instance have to be placed against their order.
TEST(ScratchPlanTest, SearchFindsWhatGreedyOrdersMiss) {
  std::mt19937_64 random(99);
  std::uint64_t heights = 0, bounds = 0;
  for (int round = 0; round < 30; ++round) {
    std::vector<ScratchRequest> requests;
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t first = random() % 20;
      requests.push_back({"r", 256 * (1 + random() % 16), first, first + random() % 12});
    }
    ASSERT_OK_AND_ASSIGN(const ScratchPlan plan, PlanScratch(std::move(requests)));
    EXPECT_EQ(FindFault(plan), "");
    heights += plan.height;
    bounds += plan.lower_bound;
  }
  EXPECT_LE(heights * 100, bounds * 103) << "greedy orders alone stay 5% above on these";
}

TEST(ScratchPlanTest, RatioIsHeightOverLowerBound) {
  EXPECT_EQ(ScratchPlan{}.ratio(), 1.0);
  ScratchPlan plan;
  plan.height = 3;
  plan.lower_bound = 2;
  EXPECT_EQ(plan.ratio(), 1.5);
}

// The checker above can fail: a planted overlap is seen.
TEST(ScratchPlanTest, PlantedOverlapIsSeen) {
  ASSERT_OK_AND_ASSIGN(ScratchPlan plan, PlanScratch({{"a", 512, 0, 5}, {"b", 512, 3, 7}}));
  ASSERT_EQ(FindFault(plan), "");
  plan.offsets[1] = plan.offsets[0] + 256;
  EXPECT_EQ(FindFault(plan), "a overlaps b");
}

TEST(ScratchPlanTest, SameRequestsGiveTheSamePlan) {
  ASSERT_OK_AND_ASSIGN(const ScratchPlan a, PlanScratch(StepTrace(8, 3)));
  ASSERT_OK_AND_ASSIGN(const ScratchPlan b, PlanScratch(StepTrace(8, 3)));
  EXPECT_EQ(a.offsets, b.offsets);
}

TEST(ScratchPlanTest, ZeroBytesTakeNoRoom) {
  ASSERT_OK_AND_ASSIGN(const ScratchPlan plan, PlanScratch({{"a", 0, 0, 9}, {"b", 1, 0, 9}}));
  EXPECT_EQ(plan.offsets[0], 0u);
  EXPECT_EQ(plan.height, 256u);
}

TEST(ScratchPlanTest, LifetimeWithoutKnownEndIsPlanned) {
  ASSERT_OK_AND_ASSIGN(const ScratchPlan plan,
                       PlanScratch({{"a", 256, 0, UINT64_MAX}, {"b", 256, 7, UINT64_MAX}}));
  EXPECT_EQ(plan.height, 512u);
  EXPECT_EQ(plan.lower_bound, 512u);
}

TEST(ScratchPlanTest, BadRequestsAreRefused) {
  EXPECT_THAT(PlanScratch({{"a", 1, 2, 1}}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(PlanScratch({{"a", UINT64_MAX, 0, 1}}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(
      PlanScratch({{"a", UINT64_MAX / 2, 0, 1}, {"b", UINT64_MAX / 2, 0, 1}, {"c", 1024, 0, 1}}),
      IsErrorKind(ErrorKind::kInvalidArgument));
}

// Nothing reaches the bound here, so no attempt is skipped; everything overlaps a good part of
// everything.
TEST(ScratchPlanTest, TenThousandBuffersTakeUnderASecond) {
  std::mt19937_64 random(7);
  std::vector<ScratchRequest> requests;
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t first = random() % 10000;
    requests.push_back({"r", 1 + random() % 1000000, first, first + random() % 3000});
  }
  const std::clock_t begun =
      std::clock();  // of this process: other work on the machine does not count
  ASSERT_OK_AND_ASSIGN(const ScratchPlan plan, PlanScratch(std::move(requests)));
  const double seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  EXPECT_EQ(plan.offsets.size(), 10000u);
  EXPECT_LE(plan.height * 10, plan.lower_bound * 12);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(seconds, 1.0);
#else
  EXPECT_LT(seconds, 20.0);  // instrumented code is several times slower
#endif
}

}  // namespace
}  // namespace holdfast
