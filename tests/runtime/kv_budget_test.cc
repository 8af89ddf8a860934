// Verifies that a cache has exactly one budget, and that an impossible one is refused by name.
#include "runtime/kv_budget.h"

#include <limits>
#include <string>

#include "device/bytes.h"
#include "gmock/gmock.h"
#include "runtime/engine.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

TEST(KvBudget, IsTheOneThatWasGiven) {
  EXPECT_EQ(*ChooseKvBudget({}, {}, {}), KvBudget(DeviceShare{0.9}));
  EXPECT_EQ(*ChooseKvBudget(0.5, {}, {}), KvBudget(DeviceShare{0.5}));
  EXPECT_EQ(*ChooseKvBudget({}, kGiB, {}), KvBudget(CacheBytes{kGiB}));
  EXPECT_EQ(*ChooseKvBudget({}, {}, 65), KvBudget(CacheBlocks{65}));
}

TEST(KvBudget, TwoAreOneTooMany) {
  const struct {
    absl::StatusOr<KvBudget> budget;
    const char *first, *second;
  } cases[] = {{ChooseKvBudget(0.9, kGiB, {}), "--utilization", "--kv-bytes"},
               {ChooseKvBudget(0.9, {}, 65), "--utilization", "--kv-blocks"},
               {ChooseKvBudget({}, kGiB, 65), "--kv-bytes", "--kv-blocks"},
               {ChooseKvBudget(0.9, kGiB, 65), "--utilization", "--kv-bytes"}};
  for (const auto& one : cases) {
    EXPECT_THAT(one.budget, IsErrorKind(ErrorKind::kInvalidArgument));
    EXPECT_THAT(std::string(one.budget.status().message()), HasSubstr(one.first));
    EXPECT_THAT(std::string(one.budget.status().message()), HasSubstr(one.second));
  }
}

TEST(KvBudget, ImpossibleOnesAreRefused) {
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  for (const KvBudget& budget :
       {KvBudget(DeviceShare{0}), KvBudget(DeviceShare{-0.5}), KvBudget(DeviceShare{1.01}),
        KvBudget(DeviceShare{kNoNumber}), KvBudget(CacheBytes{0}), KvBudget(CacheBlocks{0}),
        KvBudget(CacheBlocks{-3}), KvBudget(CacheBlocks{std::int64_t{1} << 31})}) {
    EXPECT_THAT(CheckKvBudget(budget), IsErrorKind(ErrorKind::kInvalidArgument))
        << KvBudgetText(budget);
  }
  EXPECT_OK(CheckKvBudget(DeviceShare{1}));
}

TEST(KvBudget, AnEnginesOptionsHoldOne) {
  EngineOptions options;
  EXPECT_EQ(options.kv_budget(), KvBudget(DeviceShare{0.9}));
  for (const KvBudget& budget : {KvBudget(CacheBytes{kMiB}), KvBudget(CacheBlocks{9}),
                                 KvBudget(DeviceShare{0.25}), KvBudget(DeviceShare{1})}) {
    options.set_kv_budget(budget);
    EXPECT_EQ(options.kv_budget(), budget);
  }
}

}  // namespace
}  // namespace holdfast
