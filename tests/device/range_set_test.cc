// Verifies that the set of given-back addresses merges, cuts and forgets exactly what it is told.
#include "device/range_set.h"

#include "gtest/gtest.h"

namespace holdfast {
namespace {

AddressRange Range(std::uint64_t first, std::uint64_t end) { return {{first}, end - first}; }

TEST(RangeSet, HoldsWhatWasAddedAndNotItsEnd) {
  RangeSet set;
  EXPECT_FALSE(set.Contains({0}));
  set.Add(Range(100, 200));
  EXPECT_FALSE(set.Contains({99}));
  EXPECT_TRUE(set.Contains({100}));
  EXPECT_TRUE(set.Contains({199}));
  EXPECT_FALSE(set.Contains({200}));
}

TEST(RangeSet, MergesWhatTouchesOrOverlaps) {
  RangeSet set;
  set.Add(Range(100, 200));
  set.Add(Range(200, 300));
  set.Add(Range(50, 120));
  EXPECT_EQ(set.ranges(), 1u);
  set.Add(Range(400, 500));
  set.Add(Range(600, 700));
  EXPECT_EQ(set.ranges(), 3u);
  set.Add(Range(250, 650));
  EXPECT_EQ(set.ranges(), 1u);
  EXPECT_TRUE(set.Contains({50}));
  EXPECT_TRUE(set.Contains({699}));
}

TEST(RangeSet, RemovesInsideAcrossAndNothing) {
  RangeSet set;
  set.Add(Range(100, 200));
  set.Remove(Range(140, 160));
  EXPECT_TRUE(set.Contains({139}));
  EXPECT_FALSE(set.Contains({140}));
  EXPECT_FALSE(set.Contains({159}));
  EXPECT_TRUE(set.Contains({160}));
  set.Add(Range(300, 400));
  set.Remove(Range(180, 350));
  EXPECT_TRUE(set.Contains({179}));
  EXPECT_FALSE(set.Contains({180}));
  EXPECT_FALSE(set.Contains({349}));
  EXPECT_TRUE(set.Contains({350}));
  set.Remove(Range(0, 1000));
  EXPECT_EQ(set.ranges(), 0u);
  set.Remove(Range(0, 1000));
}

TEST(RangeSet, StaysSmallHoweverOftenTheSameIsGivenBack) {
  RangeSet set;
  for (int i = 0; i < 1000; ++i) {
    set.Add(Range(100, 200));
    set.Remove(Range(120, 150));
    set.Add(Range(120, 150));
  }
  EXPECT_EQ(set.ranges(), 1u);
}

}  // namespace
}  // namespace holdfast
