// Verifies that a declaration is held to: reserved and run by one predicate, compared at each call,
// and that a call that breaks it fails alone.
#include "runtime/declared_workspace.h"

#include "gmock/gmock.h"
#include "graphs/graph_set.h"
#include "tests/allocator/workspace_rig.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Small enough for real memory: the mixed batch below 32 heads, the bf16 prefill from there on.
AttentionConfig Config(std::int64_t heads) {
  return {.max_batched_tokens = 64,
          .max_sequences = 4,
          .max_model_len = 512,
          .heads = heads,
          .key_heads = heads,
          .quantized = true,
          .prefill_factor = 2};
}
std::uint64_t Packed(const AttentionDeclaration& d) {
  return PackRequests(ToWorkspaceRequests(d.scratch))->total_bytes;
}

class DeclaredWorkspaceTest : public WorkspaceTest {
 protected:
  DeclaredWorkspaceTest() {
    WorkspaceOptions options = Options();
    options.extent_bytes = 64 * kMiB;
    options.chunk_bytes = 64 * kMiB;
    EXPECT_OK(Open(options));
  }
  AttentionDeclaration DeclareFor(std::int64_t heads,
                                  const std::string& backend = "flashmla_sparse") {
    AttentionConfig config = Config(heads);
    config.quantized = backend != "mla_dense";  // which offers no fp8 cache
    absl::StatusOr<AttentionDeclaration> d = Declare(backend, config);
    EXPECT_OK(d);
    return d.ok() ? *d : AttentionDeclaration{};
  }
};

// Field case 27: what the path does not read is not reserved, and forcing the other path is caught.
TEST_F(DeclaredWorkspaceTest, TheOtherPathFailsThatCallOnly) {
  const AttentionDeclaration declared = DeclareFor(16);
  const AttentionDeclaration other = DeclareFor(64);
  ASSERT_NE(declared.path, other.path);
  ASSERT_OK_AND_ASSIGN(const DeclaredWorkspace mla,
                       DeclaredWorkspace::Create(*workspace_, declared));
  EXPECT_EQ(workspace_->slot_bytes(), Packed(declared));
  ASSERT_OK(workspace_->Lock());
  const absl::Status refused = mla.Acquire({}, *stream_, other).status();
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kPlanMismatch));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr(declared.path), HasSubstr(other.path)));
  ASSERT_OK_AND_ASSIGN(WorkspaceLease lease, mla.Acquire({}, *stream_, declared));
  EXPECT_EQ(lease.size(), declared.scratch.size());
}

// Field case 20: a warm-up with a short decode says nothing about the worst case; the declaration
// does. A backend that under-declares loses the call, not the process.
TEST_F(DeclaredWorkspaceTest, TheWorstCaseIsReservedWhateverWarmUpSaw) {
  const AttentionDeclaration worst = DeclareFor(16);
  AttentionDeclaration small = worst;
  for (DeclaredRequest& request : small.scratch) request.bytes /= 16;
  ASSERT_OK_AND_ASSIGN(const DeclaredWorkspace honest,
                       DeclaredWorkspace::Create(*workspace_, worst, "layer 0"));
  ASSERT_OK_AND_ASSIGN(const DeclaredWorkspace under,
                       DeclaredWorkspace::Create(*workspace_, small, "layer 1"));
  ASSERT_OK(honest.Acquire({}, *stream_, small));  // warm-up
  ASSERT_OK(workspace_->Lock());
  EXPECT_OK(honest.Acquire({}, *stream_, worst));
  const absl::Status refused = under.Acquire({}, *stream_, worst).status();
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kPlanMismatch));
  EXPECT_EQ(GetErrorInfo(refused)->need, worst.scratch.front().bytes);
  EXPECT_EQ(GetErrorInfo(refused)->have, small.scratch.front().bytes);
  EXPECT_OK(under.Acquire({}, *stream_, small));
  AttentionDeclaration undeclared = small;
  undeclared.scratch.push_back({"extra", 1, "a later idea"});
  EXPECT_THAT(under.Acquire({}, *stream_, undeclared), IsErrorKind(ErrorKind::kPlanMismatch));
}

// Negative controls: a forgotten reservation is found by the lock; calls that nobody compares find
// nothing but the size.
TEST_F(DeclaredWorkspaceTest, PlantedFaultsAreFoundByTheirOwnCheck) {
  const AttentionDeclaration declared = DeclareFor(16);
  ASSERT_OK_AND_ASSIGN(
      const DeclaredWorkspace forgotten,
      DeclaredWorkspace::Create(*workspace_, declared, "forgotten", {.reserve_nothing = true}));
  ASSERT_OK_AND_ASSIGN(const DeclaredWorkspace trusting,
                       DeclaredWorkspace::Create(*workspace_, DeclareFor(16, "mla_dense"),
                                                 "trusting", {.trust_calls = true}));
  ASSERT_OK(workspace_->Lock());
  const absl::Status refused = forgotten.Acquire({}, *stream_, declared).status();
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kLocked));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("declared_workspace_test.cc:"));
  EXPECT_THAT(trusting.Acquire({}, *stream_, declared), IsErrorKind(ErrorKind::kLocked));
}

TEST_F(DeclaredWorkspaceTest, PersistentResourcesAreThoseDeclared) {
  AttentionDeclaration declared = DeclareFor(16, "mla_dense");
  declared.persistent = {{"counter", 64, "self-resetting"}};
  ASSERT_OK_AND_ASSIGN(DeclaredWorkspace mla, DeclaredWorkspace::Create(*workspace_, declared));
  ASSERT_OK(mla.MakePersistent());
  EXPECT_EQ(workspace_->Report().persistent.size(), 4u);
  ASSERT_OK(workspace_->Lock());
  ASSERT_OK_AND_ASSIGN(const PersistentResource counter, mla.Persistent({}, "counter"));
  EXPECT_EQ(counter.range.bytes, 64u);
  EXPECT_THAT(mla.Persistent({}, "other"), IsErrorKind(ErrorKind::kPlanMismatch));
}

// The whole story: declared, measured as part of a step, captured into the slot, locked by that,
// put to sleep, woken at the same place, replayed.
TEST_F(DeclaredWorkspaceTest, AGraphSetCapturesIntoASlotAndReplaysAfterSleep) {
  const AttentionDeclaration declared = DeclareFor(16);
  ASSERT_OK_AND_ASSIGN(const DeclaredWorkspace mla,
                       DeclaredWorkspace::Create(*workspace_, declared));
  ASSERT_OK_AND_ASSIGN(const PersistentResource result,
                       workspace_->Persistent({}, {"test", "result", DType::kU8, {256}}));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Lane> lane, Lane::Create(*arena_, "lane0"));
  {
    GraphSet graphs(*lane, [&](const GraphKey&) -> absl::StatusOr<Step> {
      return Step([&](StepContext& step) -> absl::Status {
        HOLDFAST_ASSIGN_OR_RETURN(WorkspaceLease lease, mla.AcquireIn(step, {}, declared));
        HOLDFAST_RETURN_IF_ERROR(step.Fill(lease.address(0), 0x5A, 256));
        return step.CopyOnDevice(step.Resolve(result.span), lease.address(0), 256);
      });
    });
    ASSERT_OK(graphs.AddPhase(Phase::kDecode, *BucketList::Of({1, 2}, 2)));
    ASSERT_OK(graphs.Measure());
    EXPECT_EQ(graphs.scratch_bytes(), Packed(declared));
    ASSERT_OK(workspace_->Reserve("graphs lane0", {{"planned scratch", graphs.scratch_bytes()}}));
    ASSERT_OK_AND_ASSIGN(const SpanId span, workspace_->CaptureSpan({}));
    // Address space is no memory: without pages nothing is captured.
    const absl::Status early = graphs.WarmUp(span);
    EXPECT_THAT(early, IsErrorKind(ErrorKind::kOutOfExtent));
    EXPECT_EQ(GetErrorInfo(early)->have, 0u);
    ASSERT_OK(workspace_->Commit());
    ASSERT_OK(graphs.Capture(span));
    EXPECT_TRUE(workspace_->locked());
    ASSERT_OK(workspace_->Lock());
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Residency> residency, Residency::Create(*arena_));
    ASSERT_OK_AND_ASSIGN(Graph* const graph, graphs.Dispatch(Phase::kDecode, 1));
    for (int cycle = 0; cycle < 3; ++cycle) {
      ASSERT_OK(residency->Sleep({"workspace"}, Soon()));
      EXPECT_EQ(own_bytes(), 0u);
      EXPECT_THAT(graph->Replay(), IsErrorKind(ErrorKind::kAsleep));
      ASSERT_OK(residency->Wake({"workspace"}));
      ASSERT_OK(device_->Fill(lane->stream(), result.range.base, 0, 256));
      ASSERT_OK(graph->Replay());
      ASSERT_OK(lane->Synchronize());
      EXPECT_TRUE(AllBytesAre(ReadBytes(*device_, *stream_, result.range), 0x5A));
    }
  }
}

}  // namespace
}  // namespace holdfast
