// The call table counts what succeeded and fails exactly the call it was told to.
#include "device/call_table.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

TEST(CallTableTest, FailsTheKthCallOnceAndNamesIt) {
  CallTable calls;
  calls.FailAt(2);
  EXPECT_THAT(calls.Enter(Call::kMap), IsOk());
  const absl::Status failed = calls.Enter(Call::kCreateChunk);
  EXPECT_THAT(failed, IsErrorKind(ErrorKind::kDriver));
  EXPECT_EQ(GetErrorInfo(failed)->call, CallName(Call::kCreateChunk));
  EXPECT_THAT(calls.Enter(Call::kCreateChunk), IsOk());
  EXPECT_EQ(calls.counted(), 3u);
  EXPECT_TRUE(calls.Disarm());
}

TEST(CallTableTest, CountsOnlyTheCallsNamed) {
  CallTable calls;
  calls.FailAt(1, {Call::kUnmap});
  EXPECT_THAT(calls.Enter(Call::kMap), IsOk());
  EXPECT_EQ(calls.counted(), 0u);
  EXPECT_THAT(calls.Enter(Call::kUnmap), IsErrorKind(ErrorKind::kDriver));
}

TEST(CallTableTest, DisarmTellsWhetherItFired) {
  CallTable calls;
  calls.FailAt(5);
  EXPECT_THAT(calls.Enter(Call::kMap), IsOk());
  EXPECT_FALSE(calls.Disarm());
  calls.FailAt(1);
  EXPECT_FALSE(calls.Enter(Call::kMap).ok());
  EXPECT_TRUE(calls.Disarm());
  EXPECT_THAT(calls.Enter(Call::kMap), IsOk());
}

TEST(CallTableTest, BalanceNeedsEachPair) {
  const std::vector<std::pair<Call, Call>> pairs = {{Call::kCreateChunk, Call::kReleaseChunk},
                                                    {Call::kMap, Call::kUnmap},
                                                    {Call::kReserveAddress, Call::kFreeAddress},
                                                    {Call::kAllocateHost, Call::kFreeHost}};
  CallTable calls;
  EXPECT_TRUE(calls.Balanced());
  for (const auto& [make, unmake] : pairs) {
    calls.Succeeded(make);
    EXPECT_FALSE(calls.Balanced()) << CallName(make);
    calls.Succeeded(unmake);
    EXPECT_TRUE(calls.Balanced()) << CallName(make);
  }
}

TEST(CallTableTest, FiresOnceUnderConcurrentCallers) {
  CallTable calls;
  calls.FailAt(500);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        if (!calls.Enter(Call::kLaunch).ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 1);
  EXPECT_EQ(calls.counted(), 4000u);
}

TEST(CallTableTest, EveryCallHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int i = 0; i < static_cast<int>(Call::kCount_); ++i) {
    names.insert(CallName(static_cast<Call>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Call::kCount_));
  EXPECT_EQ(names.count("unknown call"), 0u);
}

}  // namespace
}  // namespace holdfast
