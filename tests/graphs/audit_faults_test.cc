// Verifies that each fault a captured graph can carry is planted, found and reported by name: freed
// and foreign buffers, a stale workspace, host pointers, nodes that own memory, writes to sealed
// memory, and the addresses that stand outside kernel parameters.
#include "gmock/gmock.h"
#include "graphs/audit.h"
#include "tests/graphs/toy.h"
#include "tests/graphs/views.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AuditFaultsTest : public testing::Test {
 protected:
  AuditReport Run(std::vector<NodeView> nodes, const std::vector<ExternalRange>& externals = {}) {
    return Audit(ViewOf(std::move(nodes)), *toy_.device, toy_.arena.get(), externals);
  }
  AuditReport Kernel(std::uint64_t word, const std::vector<ExternalRange>& externals = {}) {
    return Run({KernelNode("scale", {Words({word})})}, externals);
  }

  Toy toy_;
};

TEST_F(AuditFaultsTest, ABufferFreedBeforeTheCaptureIsCalledFreed) {
  std::uint64_t freed;
  {
    const StrayChunk gone(*toy_.device);
    freed = gone.At(4096);
    EXPECT_THAT(Kernel(freed).problems, ElementsAre(HasSubstr("foreign"))) << "still there";
  }
  const AuditReport report = Kernel(freed);
  EXPECT_THAT(report.problems, ElementsAre(AllOf(HasSubstr("node 0 (kernel scale): parameter 0"),
                                                 HasSubstr("freed"))));
  EXPECT_THAT(report.Verdict("g"), IsErrorKind(ErrorKind::kForeignPointer));
}

TEST_F(AuditFaultsTest, AddressSpaceWithNothingMappedIsNoMemory) {
  const std::uint64_t bytes = toy_.device->info().granularity;
  ASSERT_OK_AND_ASSIGN(const AddressRange range, toy_.device->ReserveAddress(bytes, {}));
  EXPECT_THAT(Kernel(range.base.value + 64).problems, ElementsAre(HasSubstr("unmapped")));
  ASSERT_OK(toy_.device->FreeAddress(range));
  EXPECT_THAT(Kernel(range.base.value + 64).problems, ElementsAre(HasSubstr("freed")));
  // Taken again, it is nobody's past.
  ASSERT_OK_AND_ASSIGN(const AddressRange again, toy_.device->ReserveAddress(bytes, range.base));
  if (again.base == range.base) {
    EXPECT_FALSE(toy_.device->Query(again.base).freed);
  }
  ASSERT_OK(toy_.device->FreeAddress(again));
}

TEST_F(AuditFaultsTest, APinnedBufferThatWasFreedIsCalledFreed) {
  std::uint64_t freed;
  {
    ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, toy_.device->AllocateHost(64 * kKiB));
    freed = reinterpret_cast<std::uint64_t>(buffer.data()) + 128;
  }
  EXPECT_THAT(Kernel(freed).problems, ElementsAre(HasSubstr("freed")));
}

TEST_F(AuditFaultsTest, AStaleWorkspaceIsReportedByTheNameItHad) {
  // A library's workspace grew: the old one went to somebody else, older graphs still point to it.
  const StrayChunk old_one(*toy_.device), new_one(*toy_.device);
  const std::vector<ExternalRange> ranges = {
      {.name = "cublas workspace, old", .range = old_one.range(), .retired = true},
      {.name = "cublas workspace", .range = new_one.range()}};
  EXPECT_THAT(Kernel(new_one.At(16), ranges).problems, IsEmpty());
  const AuditReport report = Kernel(old_one.At(16), ranges);
  EXPECT_THAT(report.problems,
              ElementsAre(AllOf(HasSubstr("parameter 0 + 0"),
                                HasSubstr("freed: 'cublas workspace, old' + 16"))));
  EXPECT_EQ(report.count_by_class().at(PointerClass::kUnmapped), 1u);
  // Whoever uses the addresses now comes first.
  std::vector<ExternalRange> reused = ranges;
  reused.push_back({.name = "tensor", .range = old_one.range()});
  EXPECT_THAT(Kernel(old_one.At(16), reused).problems, IsEmpty());
}

TEST_F(AuditFaultsTest, WritesToSealedRangesAreRefusedAndCounted) {
  const StrayChunk stray(*toy_.device);
  const std::vector<ExternalRange> sealed = {
      {.name = "weights of another", .range = stray.range(), .sealed = true}};
  const NodeView read =
      CopyNode({.source = stray.At(), .destination = toy_.At(toy_.output), .bytes = 16});
  const AuditReport report = Run({FillNode(stray.At(64), 32), read}, sealed);
  EXPECT_THAT(report.problems,
              ElementsAre(AllOf(HasSubstr("node 0 (fill)"),
                                HasSubstr("writes to sealed external 'weights of another'"))));
  EXPECT_EQ(report.writes, 2u);
  EXPECT_EQ(report.writes_to_sealed, 1u);
}

TEST_F(AuditFaultsTest, MemoryOperationsAreAudited) {
  const StrayChunk stray(*toy_.device);
  ASSERT_OK(toy_.arena->Seal("weights"));
  NodeView node{.kind = NodeKind::kMemoryOperation, .name = "memory operation"};
  node.operations = {{.address = toy_.At(toy_.input, 8), .bytes = 8},
                     {.address = toy_.At(toy_.output), .bytes = 4, .write = true},
                     {.address = reinterpret_cast<std::uint64_t>(toy_.In()), .bytes = 4}};
  EXPECT_THAT(Run({node}).problems, IsEmpty());
  node.operations = {{.address = stray.At(), .bytes = 4},
                     {.address = toy_.At(toy_.weights), .bytes = 4, .write = true},
                     {.address = toy_.At(toy_.input, kToyBytes - 4), .bytes = 8}};
  EXPECT_THAT(
      Run({node}).problems,
      ElementsAre(AllOf(HasSubstr("memory operation 0"), HasSubstr("foreign")),
                  AllOf(HasSubstr("memory operation 1"), HasSubstr("sealed span 'weights'")),
                  AllOf(HasSubstr("memory operation 2"), HasSubstr("past its end"))));
}

TEST_F(AuditFaultsTest, AnAccessPolicyWindowHoldsAnAddressToo) {
  const StrayChunk stray(*toy_.device);
  NodeView node = KernelNode("attend", {Words({toy_.At(toy_.input)})});
  node.policy_window = {{toy_.At(toy_.kv)}, 1 * kMiB};
  const AuditReport report = Run({node});
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(report.spans(), ElementsAre("input", "kv"));
  node.policy_window.base.value = stray.At();
  EXPECT_THAT(Run({node}).problems,
              ElementsAre(AllOf(HasSubstr("access policy window"), HasSubstr("foreign"))));
}

TEST_F(AuditFaultsTest, TheSidesOfAPitchedCopyReachDifferentlyFar) {
  // 4 rows of 16 bytes: gathered with a pitch of 64, dense on the other side.
  const CopyView gather{.source = toy_.At(toy_.input),
                        .destination = toy_.At(toy_.output, kToyBytes - 64),
                        .bytes = 64,
                        .source_extent = 3 * 64 + 16,
                        .destination_extent = 64};
  EXPECT_THAT(Run({CopyNode(gather)}).problems, IsEmpty());
  CopyView past = gather;
  past.source = toy_.At(toy_.input, kToyBytes - 64);
  EXPECT_THAT(Run({CopyNode(past)}).problems,
              ElementsAre(AllOf(HasSubstr("copy source"), HasSubstr("run past its end"))));
}

TEST_F(AuditFaultsTest, NodesOfNestedGraphsSayWhereTheyLie) {
  const StrayChunk stray(*toy_.device);
  NodeView node = KernelNode("scale", {Words({stray.At()})});
  node.scope = "child 3/body 0 of 1";
  EXPECT_THAT(Run({node}).problems,
              ElementsAre(HasSubstr("node 0 (kernel scale in child 3/body 0 of 1)")));
}

TEST_F(AuditFaultsTest, WhatHoldsNoMemoryPassesAndWhatCannotBeReadDoesNot) {
  const AuditReport report =
      Run({{.kind = NodeKind::kEvent, .name = "event"},
           {.kind = NodeKind::kConditional, .name = "conditional"},
           {.kind = NodeKind::kSemaphore, .name = "semaphore"},
           {.kind = NodeKind::kUnreadable, .name = "unreadable: conditional node: no bodies"},
           {.kind = NodeKind::kAllocation, .name = "allocation"}});
  EXPECT_THAT(report.problems,
              ElementsAre(HasSubstr("node 2 (semaphore)"), HasSubstr("conditional node: no bodies"),
                          HasSubstr("node 4 (allocation)")));
  EXPECT_THAT(report.Verdict("g"), IsErrorKind(ErrorKind::kUnauditable));
}

}  // namespace
}  // namespace holdfast
