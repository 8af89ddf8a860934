// Verifies the record of memory: what an address belongs to now, and what it belonged to before.
#include "preload/history.h"

#include <gtest/gtest.h>

namespace holdfast::preload {
namespace {

AddressRange Range(std::uint64_t base, std::uint64_t bytes) { return {{base}, bytes}; }

TEST(History, KnowsWhatHoldsAnAddress) {
  History history;
  const AllocationPtr a = history.Add(1, "cuMemAlloc", Range(0x1000, 0x100), 1);
  EXPECT_EQ(history.At({0x1000}).live, a);
  EXPECT_EQ(history.At({0x10ff}).live, a);
  EXPECT_EQ(history.At({0x1100}).live, a);  // its end
  EXPECT_EQ(history.At({0x1101}).live, nullptr);
  EXPECT_EQ(history.At({0xfff}).live, nullptr);
}

TEST(History, KnowsWhoHeldAnAddressBefore) {
  History history;
  const AllocationPtr a = history.Add(1, "cuMemAlloc", Range(0x1000, 0x100), 1);
  EXPECT_EQ(history.End({0x1000}, "cuMemFree", 2), a);
  EXPECT_EQ(history.At({0x1010}).freed, a);
  const AllocationPtr b = history.Add(2, "cuMemAlloc", Range(0x1000, 0x80), 3);
  EXPECT_EQ(history.At({0x1010}).live, b);
  EXPECT_EQ(history.At({0x1010}).freed, a);
  EXPECT_EQ(history.At({0x1090}).live, nullptr);
  EXPECT_EQ(history.At({0x1090}).freed, a);
}

TEST(History, TheEndOfABufferIsNotTheBeginOfAFreedOne) {
  History history;
  history.Add(1, "cuMemAlloc", Range(0x1000, 0x100), 1);
  const AllocationPtr b = history.Add(2, "cuMemAlloc", Range(0x1100, 0x100), 2);
  history.End({0x1100}, "cuMemFree", 3);
  EXPECT_EQ(history.At({0x1100}).live, nullptr);
  EXPECT_EQ(history.At({0x1100}).freed, b);
}

TEST(History, AFreeThatWasRefusedIsUndone) {
  History history;
  const AllocationPtr a = history.Add(1, "cuMemAlloc", Range(0x1000, 0x100), 1);
  history.End({0x1000}, "cuMemFree", 2);
  history.Revive(a);
  EXPECT_EQ(history.At({0x1000}).live, a);
  EXPECT_EQ(history.At({0x1000}).freed, nullptr);
  EXPECT_EQ(a->died, 0u);
}

TEST(History, OnlyTheBeginOfAnAllocationFreesIt) {
  History history;
  history.Add(1, "cuMemAlloc", Range(0x1000, 0x100), 1);
  EXPECT_EQ(history.End({0x1010}, "cuMemFree", 2), nullptr);
  EXPECT_NE(history.At({0x1010}).live, nullptr);
}

TEST(History, AnUnmappingEndsAllInside) {
  History history;
  history.Add(1, "cuMemMap", Range(0x1000, 0x100), 1);
  history.Add(2, "cuMemMap", Range(0x1100, 0x100), 2);
  history.Add(3, "cuMemMap", Range(0x1200, 0x100), 3);
  EXPECT_EQ(history.EndWithin(Range(0x1000, 0x200), "cuMemUnmap", 4).size(), 2u);
  EXPECT_NE(history.At({0x1200}).live, nullptr);
}

TEST(History, WhatIsGivenOutAgainWasFreedUnseen) {
  History history;
  const AllocationPtr a = history.Add(1, "cuMemAlloc", Range(0x1000, 0x100), 1);
  history.Add(2, "cuMemAlloc", Range(0x1080, 0x100), 2);
  EXPECT_EQ(a->died, 2u);
  EXPECT_EQ(history.At({0x1010}).freed, a);
}

TEST(History, GrowthIsSeenInEitherOrder) {
  History history;
  const AllocationPtr small = history.Add(1, "cuMemAlloc", Range(0x1000, 0x100), 1);
  const AllocationPtr large = history.Add(2, "cuMemAlloc", Range(0x2000, 0x200), 2);
  history.End({0x1000}, "cuMemFree", 3);
  EXPECT_EQ(small->heir, large);

  const AllocationPtr first = history.Add(3, "cuMemAlloc", Range(0x3000, 0x100), 4);
  history.End({0x3000}, "cuMemFree", 5);
  const AllocationPtr next = history.Add(4, "cuMemAlloc", Range(0x4000, 0x200), 6);
  EXPECT_EQ(first->heir, next);
}

TEST(History, OtherSizesAndKindsAreNoGrowth) {
  History history;
  const AllocationPtr a = history.Add(1, "cuMemAlloc", Range(0x1000, 0x100), 1);
  history.Add(2, "cuMemAlloc", Range(0x2000, 0x100), 2);  // not larger
  history.End({0x1000}, "cuMemFree", 3);
  EXPECT_EQ(a->heir, nullptr);
  const AllocationPtr b = history.Add(3, "cuMemAlloc", Range(0x3000, 0x100), 4);
  history.Add(4, "cuMemHostAlloc", Range(0x4000, 0x200), 5);  // another kind
  history.End({0x3000}, "cuMemFree", 6);
  EXPECT_EQ(b->heir, nullptr);
}

}  // namespace
}  // namespace holdfast::preload
