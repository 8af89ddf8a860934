// Verifies the judgement of graphs against the record: what is found, when, and what is not.
#include "preload/watch.h"

#include <gtest/gtest.h>

namespace holdfast::preload {
namespace {

constexpr std::uint64_t kExec = 77;
const std::string kNode = "kernel scale";

class WatchTest : public testing::Test {
 protected:
  std::vector<Watch::Seen> See(std::uint64_t word) {
    return {
        {.reference = {.node = 3, .node_name = &kNode, .where = "parameter 1 + 0", .word = word},
         .place = history.At({word})}};
  }
  AllocationPtr Alloc(std::uint64_t base, Tick now) {
    return history.Add(++ids, "cuMemAlloc", {{base}, 0x100}, now);
  }
  // Captured from tick 10 to tick 20.
  static GraphFacts Captured(std::uint64_t exec = kExec) {
    return {.capture = {.number = 1, .begin = 10, .end = 20}, .exec = exec};
  }

  History history;
  Watch watch;
  std::uint64_t ids = 0;
};

TEST_F(WatchTest, MemoryInUseIsNoFinding) {
  Alloc(0x1000, 1);
  watch.Instantiated(Captured(), See(0x1010));
  EXPECT_TRUE(watch.findings().empty());
  EXPECT_TRUE(watch.graphs().at(0).alive);
}

TEST_F(WatchTest, SaysWhenMemoryWasFreed) {
  const struct {
    Tick freed;
    Fault fault;
  } cases[] = {{5, Fault::kFreedBeforeCapture},
               {15, Fault::kFreedDuringCapture},
               {25, Fault::kFreedAfterCapture}};
  std::uint64_t base = 0x1000, exec = 1;
  for (const auto& c : cases) {
    Alloc(base, 1);
    history.End({base}, "cuMemFree", c.freed);
    watch.Instantiated(Captured(exec++), See(base));
    EXPECT_EQ(watch.findings().back().fault, c.fault);
    base += 0x1000;
  }
  EXPECT_EQ(watch.findings().size(), 3u);
}

TEST_F(WatchTest, AFreeUnderALivingGraphIsFoundAtOnce) {
  const AllocationPtr a = Alloc(0x1000, 1);
  watch.Instantiated(Captured(), See(0x1010));
  history.End({0x1000}, "cuMemFree", 30);
  watch.Freed(a);
  ASSERT_EQ(watch.findings().size(), 1u);
  EXPECT_EQ(watch.findings()[0].fault, Fault::kFreedWhileAlive);
  EXPECT_EQ(watch.findings()[0].references.at(0).node, 3u);
}

TEST_F(WatchTest, AFreeAfterTheGraphIsNone) {
  const AllocationPtr a = Alloc(0x1000, 1);
  watch.Instantiated(Captured(), See(0x1010));
  watch.Destroyed(kExec);
  history.End({0x1000}, "cuMemFree", 30);
  watch.Freed(a);
  EXPECT_TRUE(watch.findings().empty());
}

TEST_F(WatchTest, AnAddressGivenAwayAfterTheCaptureIsFound) {
  const AllocationPtr a = Alloc(0x1000, 1);
  history.End({0x1000}, "cuMemFree", 21);
  Alloc(0x1000, 22);
  watch.Instantiated(Captured(), See(0x1010));
  ASSERT_EQ(watch.findings().size(), 1u);
  EXPECT_EQ(watch.findings()[0].fault, Fault::kReplaced);
  EXPECT_EQ(watch.findings()[0].allocation, a);
}

TEST_F(WatchTest, AnAddressGivenAwayBeforeTheCaptureIsTheNewOwners) {
  Alloc(0x1000, 1);
  history.End({0x1000}, "cuMemFree", 2);
  const AllocationPtr b = Alloc(0x1000, 3);
  watch.Instantiated(Captured(), See(0x1010));
  EXPECT_TRUE(watch.findings().empty());
  history.End({0x1000}, "cuMemFree", 30);
  watch.Freed(b);
  EXPECT_EQ(watch.findings().size(), 1u);
}

TEST_F(WatchTest, AnUpdateChangesWhatIsWatched) {
  const AllocationPtr a = Alloc(0x1000, 1), b = Alloc(0x2000, 2);
  watch.Instantiated(Captured(), See(0x1010));
  watch.Updated(kExec, Captured(), See(0x2010));
  watch.Freed(a);
  EXPECT_TRUE(watch.findings().empty());
  watch.Freed(b);
  EXPECT_EQ(watch.findings().size(), 1u);
  EXPECT_EQ(watch.graphs().size(), 1u);
}

TEST_F(WatchTest, WhatIsChangedNodeByNodeIsNotJudged) {
  const AllocationPtr a = Alloc(0x1000, 1);
  watch.Instantiated(Captured(), See(0x1010));
  watch.ChangedOneNode(kExec);
  watch.Freed(a);
  EXPECT_TRUE(watch.findings().empty());
  EXPECT_EQ(watch.graphs()[0].changed_node_by_node, 1u);
}

TEST_F(WatchTest, AGraphThatWasRefusedIsJudgedButNotWatched) {
  const AllocationPtr a = Alloc(0x1000, 1), b = Alloc(0x2000, 1);
  history.End({0x1000}, "cuMemFree", 2);
  std::vector<Watch::Seen> seen = See(0x1010);
  seen.push_back(See(0x2010)[0]);
  watch.Instantiated(Captured(/*exec=*/0), seen);
  ASSERT_EQ(watch.findings().size(), 1u);
  EXPECT_EQ(watch.findings()[0].allocation, a);
  watch.Freed(b);
  EXPECT_EQ(watch.findings().size(), 1u);
}

TEST_F(WatchTest, WordsOfOneAllocationAreOneFinding) {
  const AllocationPtr a = Alloc(0x1000, 1);
  std::vector<Watch::Seen> seen;
  for (int i = 0; i < 20; ++i) seen.push_back(See(0x1010)[0]);
  watch.Instantiated(Captured(), seen);
  watch.Freed(a);
  ASSERT_EQ(watch.findings().size(), 1u);
  EXPECT_EQ(watch.findings()[0].words, 20u);
  EXPECT_EQ(watch.findings()[0].references.size(), kReferencesKept);
}

}  // namespace
}  // namespace holdfast::preload
