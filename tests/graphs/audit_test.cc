// Verifies that the audit finds every aligned pointer, names what it points into, and refuses by
// name what no graph may hold.
#include "graphs/audit.h"

#include "gmock/gmock.h"
#include "tests/graphs/toy.h"
#include "tests/graphs/views.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AuditTest : public testing::Test {
 protected:
  AuditReport Run(std::vector<NodeView> nodes, const std::vector<ExternalRange>& externals = {},
                  const AuditPolicy& policy = {}) {
    return Audit(ViewOf(std::move(nodes)), *toy_.device, toy_.arena.get(), externals, policy);
  }
  // The problems of one kernel with these words.
  std::vector<std::string> Problems(const std::vector<std::uint64_t>& words) {
    return Run({KernelNode("scale", {Words(words)})}).problems;
  }

  Toy toy_;
};

// "class object + offset" of each finding.
std::vector<std::string> Found(const AuditReport& report) {
  std::vector<std::string> found;
  for (const PointerFinding& p : report.pointers) {
    found.push_back(p.where() + ": " + PointerClassName(p.kind) + " " + report.ObjectOf(p) + " + " +
                    std::to_string(p.offset));
  }
  return found;
}

TEST_F(AuditTest, FindsEveryAlignedPointerOfAByValueStruct) {
  const AuditReport report =
      Run({KernelNode("mix", {Words({toy_.At(toy_.weights), 12, toy_.At(toy_.output, 40)}),
                              Words({toy_.At(toy_.kv, 5)}, 24)})});
  EXPECT_THAT(Found(report),
              ElementsAre("parameter 0 + 0: span weights + 0", "parameter 0 + 16: span output + 40",
                          "parameter 1 + 0: span kv + 5"));
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.words, 4u);
  EXPECT_THAT(report.spans(), ElementsAre("kv", "output", "weights"));
  EXPECT_OK(report.Verdict("g"));
}

TEST_F(AuditTest, AParameterMayBeginAnywhereThatIsAligned) {
  // A parameter at offset 112 is aligned; so are its words.
  const AuditReport report = Run({KernelNode("mix", {Words({7, toy_.At(toy_.input, 8)}, 112)})});
  EXPECT_THAT(Found(report), ElementsAre("parameter 0 + 8: span input + 8"));
}

TEST_F(AuditTest, AParameterThatIsNotAlignedHoldsNoPointerWhateverItLooksLike) {
  // CUB's reduction has such a struct of integers at offset 20; a packed pointer there is for the
  // shifted capture to find.
  const AuditReport report = Run({KernelNode("mix", {Words({toy_.At(toy_.input, 8)}, 20, 4)})});
  EXPECT_THAT(report.pointers, IsEmpty());
  EXPECT_EQ(report.words, 0u);
}

TEST_F(AuditTest, OnePastTheEndBelongsToTheSpanBeforeUnlessAnotherBegins) {
  const AuditReport report = Run({KernelNode(
      "range", {Words({toy_.At(toy_.weights, kToyBytes), toy_.At(toy_.bias, kToyBytes)})})});
  EXPECT_THAT(Found(report),
              ElementsAre("parameter 0 + 0: span bias + 0",
                          "parameter 0 + 8: span bias + " + std::to_string(kToyBytes)));
  EXPECT_THAT(report.problems, IsEmpty());
}

TEST_F(AuditTest, HostSpansAndDeclaredRangesHaveNames) {
  const StrayChunk stray(*toy_.device);
  const std::uint64_t staging = reinterpret_cast<std::uint64_t>(toy_.In()) + 12;
  const AuditReport report =
      Run({KernelNode("mix", {Words({staging, stray.At(64)})})}, {{"library", stray.range()}});
  EXPECT_THAT(Found(report), ElementsAre("parameter 0 + 0: host span staging.in + 12",
                                         "parameter 0 + 8: external library + 64"));
  EXPECT_THAT(report.problems, IsEmpty());
}

TEST_F(AuditTest, NumbersAreNoPointers) {
  const double one = 1.0, tiny = 1e-300;
  std::uint64_t bits_one, bits_tiny;
  std::memcpy(&bits_one, &one, sizeof(one));
  std::memcpy(&bits_tiny, &tiny, sizeof(tiny));
  // Counts, -1, a pair of floats, doubles, pairs of small integers that look like addresses.
  const AuditReport report = Run({KernelNode(
      "numbers", {Words({0, 1, 65535, 65536, ~std::uint64_t{0}, 0x3f8000003f800000, bits_one,
                         bits_tiny, 0x0000200000000010, 0x0000001000000020})})});
  EXPECT_THAT(report.pointers, IsEmpty());
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.words, 10u);
}

TEST_F(AuditTest, RefusesForeignDeviceMemoryByNodeAndWord) {
  const StrayChunk stray(*toy_.device);
  const AuditReport report = Run({KernelNode("add", {Words({toy_.At(toy_.input)})}),
                                  KernelNode("scale", {Words({7, stray.At(4096)})})});
  EXPECT_THAT(report.problems,
              ElementsAre(AllOf(HasSubstr("node 1 (kernel scale): parameter 0 + 8"),
                                HasSubstr("foreign"))));
  const absl::Status verdict = report.Verdict("decode/8");
  ASSERT_THAT(verdict, IsErrorKind(ErrorKind::kForeignPointer));
  EXPECT_EQ(GetErrorInfo(verdict)->object, "decode/8");
  EXPECT_EQ(report.count_by_class().at(PointerClass::kForeign), 1u);
}

TEST_F(AuditTest, RefusesPinnedMemoryNobodyRegistered) {
  ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, toy_.device->AllocateHost(4096));
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(buffer.data());
  EXPECT_THAT(Problems({address}), ElementsAre(HasSubstr("foreign")));
  const AuditReport copies = Run({CopyNode({.source = address,
                                            .destination = toy_.At(toy_.input),
                                            .source_side = CopySide::kHost,
                                            .bytes = 64}),
                                  CopyNode({.source = toy_.At(toy_.output),
                                            .destination = address,
                                            .destination_side = CopySide::kHost,
                                            .bytes = 64})});
  EXPECT_THAT(
      copies.problems,
      ElementsAre(
          AllOf(HasSubstr("node 0 (copy): copy source"), HasSubstr("no registered host span")),
          AllOf(HasSubstr("node 1 (copy): copy destination"), HasSubstr("host span"))));
  EXPECT_THAT(copies.Verdict("g"), IsErrorKind(ErrorKind::kForeignPointer));
}

TEST_F(AuditTest, RefusesWindowAddressesInNoSpan) {
  const AddressRange kv = toy_.arena->range(toy_.kv);
  // Past the last span of a group, on its page and beyond it.
  for (std::uint64_t address : {toy_.At(toy_.output2, kToyBytes + 64), kv.base.value - 64}) {
    EXPECT_THAT(Problems({address}),
                ElementsAre(AllOf(HasSubstr("parameter 0 + 0"), HasSubstr("in no span"))));
  }
}

TEST_F(AuditTest, RefusesFreedMemoryAsACopyOrFill) {
  std::uint64_t freed = 0;
  {
    const StrayChunk stray(*toy_.device);
    freed = stray.At();
  }
  const AuditReport report =
      Run({FillNode(freed, 16),
           CopyNode({.source = freed, .destination = toy_.At(toy_.input), .bytes = 16})});
  EXPECT_THAT(report.problems,
              ElementsAre(AllOf(HasSubstr("node 0 (fill): fill destination"), HasSubstr("freed")),
                          AllOf(HasSubstr("node 1 (copy): copy source"), HasSubstr("freed"))));
  EXPECT_EQ(report.count_by_class().at(PointerClass::kUnmapped), 2u);
}

TEST_F(AuditTest, CopiesAndFillsLieInsideOneObject) {
  const std::uint64_t in = reinterpret_cast<std::uint64_t>(toy_.In());
  const auto to_input = [&](std::uint64_t source, std::uint64_t offset, std::uint64_t bytes) {
    return CopyNode({.source = source,
                     .destination = toy_.At(toy_.input, offset),
                     .source_side = CopySide::kHost,
                     .bytes = bytes});
  };
  EXPECT_THAT(Run({to_input(in, 0, kToyBytes), FillNode(toy_.At(toy_.output), kToyBytes)}).problems,
              IsEmpty());
  EXPECT_THAT(Run({to_input(in, 8, kToyBytes)}).problems,
              ElementsAre(AllOf(HasSubstr("copy destination"), HasSubstr("span 'input' + 8"),
                                HasSubstr("run past its end"))));
  EXPECT_THAT(
      Run({to_input(in + 8, 0, kToyBytes)}).problems,
      ElementsAre(AllOf(HasSubstr("copy source"), HasSubstr("host span 'staging.in' + 8"))));
  EXPECT_THAT(Run({FillNode(toy_.At(toy_.output, 4), kToyBytes)}).problems,
              ElementsAre(AllOf(HasSubstr("fill destination"), HasSubstr("span 'output' + 4"))));
}

TEST_F(AuditTest, UnifiedSidesAreJudgedByWhereTheyLie) {
  const std::uint64_t in = reinterpret_cast<std::uint64_t>(toy_.In());
  const auto copy = [&](std::uint64_t source) {
    return CopyNode({.source = source,
                     .destination = toy_.At(toy_.output),
                     .source_side = CopySide::kUnified,
                     .destination_side = CopySide::kUnified,
                     .bytes = 16});
  };
  EXPECT_THAT(
      Found(Run({copy(in), copy(toy_.At(toy_.input, 16))})),
      ElementsAre("copy source: host span staging.in + 0", "copy destination: span output + 0",
                  "copy source: span input + 16", "copy destination: span output + 0"));
  const int on_stack = 0;
  EXPECT_THAT(Run({copy(reinterpret_cast<std::uint64_t>(&on_stack))}).problems,
              ElementsAre(HasSubstr("no registered host span")));
}

TEST_F(AuditTest, CopiesAndFillsNeedCommittedPagesWhileAwake) {
  const std::uint64_t committed = toy_.device->info().granularity;
  const std::vector<NodeView> beyond = {FillNode(toy_.At(toy_.kv, committed - 64), 128)};
  EXPECT_THAT(Run({FillNode(toy_.At(toy_.kv, committed - 64), 64)}).problems, IsEmpty());
  EXPECT_THAT(Run(beyond).problems,
              ElementsAre(AllOf(HasSubstr("uncommitted"), HasSubstr("span 'kv'"))));
  // A kernel may know the whole extent: it is told at run time how much of it is there.
  EXPECT_THAT(Problems({toy_.At(toy_.kv, committed + 64)}), IsEmpty());
  ASSERT_OK(toy_.Sleep({"kv"}));
  EXPECT_THAT(Run(beyond).problems, IsEmpty());
  ASSERT_OK(toy_.Wake({"kv"}));
}

TEST_F(AuditTest, RefusesWritesToSealedSpansByName) {
  const NodeView fill = FillNode(toy_.At(toy_.bias, 16), 32);
  const NodeView copy =
      CopyNode({.source = toy_.At(toy_.weights), .destination = toy_.At(toy_.bias), .bytes = 16});
  EXPECT_THAT(Run({fill, copy}).problems, IsEmpty()) << "not sealed yet";
  ASSERT_OK(toy_.arena->Seal("weights"));
  const AuditReport report =
      Run({fill, copy, KernelNode("read", {Words({toy_.At(toy_.weights)})})});
  EXPECT_THAT(
      report.problems,
      ElementsAre(AllOf(HasSubstr("node 0 (fill)"), HasSubstr("writes to sealed span 'bias'")),
                  AllOf(HasSubstr("node 1 (copy): copy destination"), HasSubstr("'bias'"))));
  EXPECT_TRUE(report.pointers[0].write);
  ASSERT_OK(toy_.Sleep({"weights"}));
  EXPECT_THAT(Run({fill, copy}).problems, SizeIs(2)) << "asleep";
  ASSERT_OK(toy_.Wake({"weights"}));
}

TEST_F(AuditTest, RefusesNodesItCannotReadUnlessAllowed) {
  const std::vector<NodeView> nodes = {{.kind = NodeKind::kHost, .name = "host"},
                                       {.kind = NodeKind::kAllocation, .name = "allocation"},
                                       {.kind = NodeKind::kFree, .name = "free"},
                                       {.kind = NodeKind::kChild, .name = "child"},
                                       {.kind = NodeKind::kUnreadable, .name = "conditional"},
                                       {.kind = NodeKind::kEmpty, .name = "empty"}};
  const AuditReport report = Run(nodes);
  EXPECT_THAT(report.problems,
              ElementsAre(HasSubstr("node 0 (host)"), HasSubstr("node 1 (allocation)"),
                          HasSubstr("node 2 (free)"), HasSubstr("node 3 (child)"),
                          HasSubstr("node 4 (unreadable conditional)")));
  EXPECT_THAT(report.Verdict("g"), IsErrorKind(ErrorKind::kUnauditable));
  const AuditPolicy policy{.allow_host_nodes = true,
                           .allowed_nodes = {"allocation", "free", "child", "conditional"}};
  EXPECT_THAT(Run(nodes, {}, policy).problems, IsEmpty());
  EXPECT_THAT(Run(nodes, {}, {.allowed_nodes = {"free"}}).problems, SizeIs(4));
}

TEST_F(AuditTest, FirstProblemDecidesTheKindAndAllAreListed) {
  const StrayChunk stray(*toy_.device);
  const NodeView foreign = KernelNode("scale", {Words({stray.At()})});
  const NodeView host{.kind = NodeKind::kHost, .name = "host"};
  const absl::Status pointer_first = Run({foreign, host}).Verdict("g");
  EXPECT_THAT(pointer_first, IsErrorKind(ErrorKind::kForeignPointer));
  EXPECT_THAT(std::string(pointer_first.message()), AllOf(HasSubstr("scale"), HasSubstr("(host)")));
  EXPECT_THAT(Run({host, foreign}).Verdict("g"), IsErrorKind(ErrorKind::kUnauditable));
}

TEST_F(AuditTest, StandsAloneWithoutAnArena) {
  const StrayChunk stray(*toy_.device);
  const GraphView view = ViewOf({KernelNode("add", {Words({stray.At(8), toy_.At(toy_.input)})})});
  const AuditReport report = Audit(view, *toy_.device, nullptr, {{"mine", stray.range()}});
  EXPECT_EQ(report.ObjectOf(report.pointers[0]), "mine");
  EXPECT_THAT(report.problems,
              ElementsAre(AllOf(HasSubstr("parameter 0 + 8"), HasSubstr("foreign"))));
}

}  // namespace
}  // namespace holdfast
