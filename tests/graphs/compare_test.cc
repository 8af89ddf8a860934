// Verifies that two captures are compared word for word, and that a shifted one moves exactly what
// it must.
#include "graphs/compare.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graphs/views.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kSpanAt = 0x2b5d40000000, kHostAt = 0x7f0000001000, kShift = 0x1000000;

GraphView ToyView() {
  return ViewOf({KernelNode("scale", {Words({kSpanAt + 16, 7}), Words({3}, 20, 4)}),
                 CopyNode({.source = kSpanAt,
                           .destination = kHostAt,
                           .destination_side = CopySide::kHost,
                           .bytes = 64}),
                 FillNode(kSpanAt + 256, 32)});
}

TEST(DiffGraphs, EqualGraphsHaveNoDifference) {
  EXPECT_THAT(DiffGraphs(ToyView(), ToyView()), IsEmpty());
}

TEST(DiffGraphs, NamesNodeAndWord) {
  GraphView other = ToyView();
  other.nodes[0].parameters[0] = Words({kSpanAt + 16, 8});
  EXPECT_THAT(DiffGraphs(ToyView(), other),
              ElementsAre(AllOf(HasSubstr("node 0 (kernel scale)"), HasSubstr("parameter 0 + 8"),
                                HasSubstr("0x7, then 0x8"))));
}

TEST(DiffGraphs, SeesBytesOutsideAlignedWords) {
  GraphView other = ToyView();
  other.nodes[0].parameters[1].bytes[1] = std::byte{0};  // at offset 21 of the buffer
  EXPECT_THAT(DiffGraphs(ToyView(), other), ElementsAre(HasSubstr("parameter 1 + 0")));
}

TEST(DiffGraphs, PassesOverTheCapturingThreadsOwnStack) {
  // Verifies: temporaries of a library may lie elsewhere on the stack; any other host address may
  // not move.
  const std::uint64_t locals[2] = {0, 0};
  const auto word = [](const std::uint64_t* p) { return reinterpret_cast<std::uint64_t>(p); };
  GraphView first = ToyView(), second = ToyView();
  first.nodes[0].parameters[0] = Words({word(&locals[0]), 7});
  second.nodes[0].parameters[0] = Words({word(&locals[1]), 7});
  EXPECT_THAT(DiffGraphs(first, second), IsEmpty());
  second.nodes[0].parameters[0] = Words({kHostAt, 7});
  EXPECT_THAT(DiffGraphs(first, second), ElementsAre(HasSubstr("parameter 0 + 0")));
}

TEST(DiffGraphs, SeesCopiesFillsKindsAndEdges) {
  GraphView other = ToyView();
  other.nodes[1].copy.bytes = 65;
  other.nodes[2].fill.destination += 1;
  other.edges = {{0, 1}, {0, 2}};
  EXPECT_THAT(DiffGraphs(ToyView(), other),
              ElementsAre(HasSubstr("copy bytes: 0x40, then 0x41"), HasSubstr("fill destination"),
                          HasSubstr("edge 1 -> 2 is gone"), HasSubstr("edge 0 -> 2 is new")));
  other = ToyView();
  other.nodes[2] = KernelNode("add", {});
  EXPECT_THAT(DiffGraphs(ToyView(), other),
              ElementsAre(HasSubstr("node 2 (fill): then node 2 (kernel add)")));
  other = ToyView();
  other.nodes.pop_back();
  other.edges.pop_back();
  EXPECT_THAT(DiffGraphs(ToyView(), other),
              ElementsAre(HasSubstr("nodes: 3, then 2"), HasSubstr("edge 1 -> 2 is gone")));
}

// What the audit says of ToyView().
AuditReport ToyViewAudit() {
  AuditReport audit;
  audit.objects = {"x", "h"};
  audit.pointers = {
      {.node = 0, .kind = PointerClass::kSpan, .object = 0, .word = kSpanAt + 16, .offset = 16},
      {.node = 1,
       .place = WordPlace::kCopySource,
       .kind = PointerClass::kSpan,
       .object = 0,
       .word = kSpanAt},
      {.node = 1,
       .place = WordPlace::kCopyDestination,
       .kind = PointerClass::kHostSpan,
       .object = 1,
       .word = kHostAt},
      {.node = 2,
       .place = WordPlace::kFillDestination,
       .kind = PointerClass::kSpan,
       .object = 0,
       .word = kSpanAt + 256,
       .offset = 256}};
  return audit;
}

GraphView ShiftedToyView() {
  GraphView view = ToyView();
  view.nodes[0].parameters[0] = Words({kSpanAt + 16 + kShift, 7});
  view.nodes[1].copy.source += kShift;
  view.nodes[2].fill.destination += kShift;
  return view;
}

std::vector<std::string> DiffShifted(const GraphView& shifted) {
  return CompareShifted(ToyView(), ToyViewAudit(), shifted, kShift, nullptr, nullptr).problems;
}

TEST(CompareShifted, ExactlyTheSpanPointersMoved) {
  EXPECT_THAT(DiffShifted(ShiftedToyView()), IsEmpty());
}

TEST(CompareShifted, ReportsASpanPointerThatStayedBySpan) {
  GraphView stayed = ShiftedToyView();
  stayed.nodes[0].parameters[0] = Words({kSpanAt + 16, 7});
  stayed.nodes[2].fill.destination -= kShift;
  EXPECT_THAT(DiffShifted(stayed),
              ElementsAre(AllOf(HasSubstr("node 0 (kernel scale): parameter 0 + 0"),
                                HasSubstr("span 'x' + 16 did not move")),
                          AllOf(HasSubstr("node 2 (fill)"), HasSubstr("span 'x' + 256"))));
}

TEST(CompareShifted, ReportsOtherWordsThatMoved) {
  GraphView moved = ShiftedToyView();
  moved.nodes[0].parameters[0] = Words({kSpanAt + 16 + kShift, 7 + kShift});
  moved.nodes[1].copy.destination += kShift;
  EXPECT_THAT(DiffShifted(moved),
              ElementsAre(HasSubstr("parameter 0 + 8"), HasSubstr("copy destination")));
}

TEST(CompareShifted, ReportsAnotherGraphInsteadOfReadingItsWords) {
  GraphView other = ShiftedToyView();
  other.nodes[0] = KernelNode("scale", {Words({kSpanAt + 16 + kShift})});
  EXPECT_THAT(DiffShifted(other),
              ElementsAre(HasSubstr("parameters: 2, then 1"), HasSubstr("16 bytes at 0, then 8")));
  other = ShiftedToyView();
  other.nodes.resize(1);
  other.edges.clear();
  EXPECT_THAT(DiffShifted(other), testing::Contains(HasSubstr("nodes: 3, then 1")));
}

}  // namespace
}  // namespace holdfast
