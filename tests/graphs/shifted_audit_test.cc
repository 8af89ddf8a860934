// Verifies that the shifted capture proves what the aligned walk cannot see: a pointer at offset 4
// of a packed struct is found, named, and joins the manifest; and that it reports words that lie in
// the arena and stayed, and words that changed otherwise.
#include "gmock/gmock.h"
#include "graphs/compare.h"
#include "graphs/graph_set.h"
#include "tests/graphs/audit_ops.h"
#include "tests/graphs/toy_step.h"
#include "tests/graphs/views.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint64_t kShift = 64 * kGiB;

// Adds to a word of the state through a packed struct. `stale`: an address kept from outside, which
// no shift reaches.
class PackedStep {
 public:
  PackedStep(const Toy& toy, SpanId span, std::uint64_t stale = 0)
      : toy_(toy), span_(span), stale_(stale) {}

  absl::Status operator()(StepContext& context) const {
    HOLDFAST_RETURN_IF_ERROR(context.Fill(context.Resolve(toy_.output), 0, 16));
    const std::uint64_t address = stale_ != 0 ? stale_ : context.Resolve(span_).value + 8;
    const PackedParams params{.add = 5, .data = reinterpret_cast<std::uint32_t*>(address)};
    return context.Launch(PackedOp(), {}, params);
  }

 private:
  const Toy& toy_;
  SpanId span_;
  std::uint64_t stale_;
};

class ShiftedAuditTest : public testing::Test {
 protected:
  std::unique_ptr<GraphSet> Captured(const Step& step) {
    auto graphs = std::make_unique<GraphSet>(
        *toy_.lane, [step](const GraphKey&) -> absl::StatusOr<Step> { return step; });
    absl::StatusOr<BucketList> buckets = BucketList::Of({1}, 1);
    EXPECT_OK(buckets);
    EXPECT_OK(graphs->AddPhase(Phase::kDecode, *std::move(buckets)));
    EXPECT_OK(graphs->Measure());
    EXPECT_OK(graphs->Capture({}));
    return graphs;
  }

  Toy toy_;
};

TEST_F(ShiftedAuditTest, APackedPointerIsMissedByTierOneAndProvedByTierTwo) {
  const auto graphs = Captured(PackedStep(toy_, toy_.input));
  Graph* const graph = graphs->graphs().at(0);
  EXPECT_THAT(graph->manifest().spans, ElementsAre("output")) << "tier 1 sees aligned words only";
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> problems, graphs->ShiftedCapture({}, kShift));
  EXPECT_THAT(problems, IsEmpty());
  ASSERT_THAT(graph->manifest().packed, SizeIs(1));
  const PackedPointer& packed = graph->manifest().packed[0];
  EXPECT_EQ(packed.node, 1u);
  EXPECT_EQ(packed.byte, 4u);
  EXPECT_EQ(packed.span, "input");
  EXPECT_EQ(packed.offset, 8u);
  EXPECT_THAT(graph->manifest().spans, ElementsAre("input", "output"));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> again, graphs->ShiftedCapture({}, kShift));
  EXPECT_THAT(again, IsEmpty());
  EXPECT_THAT(graph->manifest().packed, SizeIs(1)) << "known already";
}

TEST_F(ShiftedAuditTest, ItsTagMustBeAwakeFromThenOn) {
  const auto graphs = Captured(PackedStep(toy_, toy_.kv));
  Graph* const graph = graphs->graphs().at(0);
  EXPECT_THAT(graph->manifest().tags, ElementsAre("state"));
  ASSERT_OK(graphs->ShiftedCapture({}, kShift).status());
  EXPECT_THAT(graph->manifest().tags, ElementsAre("kv", "state"));
  ASSERT_OK(toy_.Sleep({"kv"}));
  EXPECT_THAT(graph->Replay(), IsErrorKind(ErrorKind::kAsleep));
  ASSERT_OK(toy_.Wake({"kv"}));
}

TEST_F(ShiftedAuditTest, AStalePackedPointerDoesNotMoveAndNobodyIsToldItDid) {
  // Control: an address that was resolved once and kept. Nothing in it moves, so no word differs:
  // only a pointer that tier 1 sees can be reported as having stayed.
  const auto graphs = Captured(PackedStep(toy_, toy_.input, toy_.At(toy_.input, 8)));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> problems, graphs->ShiftedCapture({}, kShift));
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_THAT(graphs->graphs().at(0)->manifest().packed, IsEmpty());
}

TEST_F(ShiftedAuditTest, AnAlignedPointerThatStayedIsReportedBySpan) {
  const std::uint64_t stale = toy_.At(toy_.input, 16);
  const Step step = [stale](StepContext& context) {
    return context.Launch(ScaleOp(), ShapeFor(4),
                          ScaleParams{reinterpret_cast<float*>(stale), 4, 1.0f, 0.0f});
  };
  const auto graphs = Captured(step);
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> problems, graphs->ShiftedCapture({}, kShift));
  EXPECT_THAT(problems, ElementsAre(AllOf(HasSubstr("parameter 0 + 0"),
                                          HasSubstr("span 'input' + 16 did not move"))));
}

// By hand, since no step changes a word otherwise: the halves of a packed word that moved by
// something else than the shift.
TEST_F(ShiftedAuditTest, WordsThatMovedOtherwiseAreReported) {
  const auto view = [&](std::uint64_t pointer) {
    ParameterView parameter{.offset = 0, .bytes = ParameterView::Bytes(16)};
    std::memcpy(parameter.bytes.data() + 4, &pointer, sizeof(pointer));
    return ViewOf({KernelNode("packed", {parameter})});
  };
  const std::uint64_t at = toy_.At(toy_.input, 8);
  const AuditReport audit = Audit(view(at), *toy_.device, toy_.arena.get());
  const auto compare = [&](std::uint64_t moved) {
    return CompareShifted(view(at), audit, view(moved), kShift, toy_.arena.get(),
                          toy_.device.get());
  };
  const ShiftReport right = compare(at + kShift);
  EXPECT_THAT(right.problems, IsEmpty());
  EXPECT_EQ(right.moved, 1u);
  ASSERT_THAT(right.packed, SizeIs(1));
  EXPECT_EQ(right.packed[0].word, at);
  const ShiftReport wrong = compare(at + 2 * kShift);
  EXPECT_THAT(wrong.problems, Not(IsEmpty()));
  EXPECT_THAT(wrong.packed, IsEmpty());
  // Outside the arena it is no pointer of ours, however it moved.
  const std::uint64_t other = 0x123456789abc;
  const AuditReport none;
  EXPECT_THAT(CompareShifted(view(other), none, view(other + kShift), kShift, toy_.arena.get(),
                             toy_.device.get())
                  .problems,
              Not(IsEmpty()));
}

}  // namespace
}  // namespace holdfast
