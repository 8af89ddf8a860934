// Verifies: path gating end to end: what is reserved is what the selected path reads, what that
// saves in bytes and blocks, and that a call of another path is refused by itself.
#include "runtime/path_saving.h"
#include "tests/runtime/synthetic_rig.h"

namespace holdfast {
namespace {

const DeclaredRequest* FindRequest(const DeclaredLayer& layer, const std::string& name) {
  for (const DeclaredRequest& request : layer.declaration().scratch) {
    if (request.name == name) return &request;
  }
  return nullptr;
}

absl::StatusOr<PathSaving> Saving(const std::string& spec, const SyntheticLimits& limits,
                                  const PathBudget& budget) {
  HOLDFAST_ASSIGN_OR_RETURN(const auto layers, ParseSyntheticSpec(spec, limits));
  return SavingOfPaths(layers, budget);
}

// Bytes of the workspace that hold a canary after every bucket was run: reserved, and touched by
// nobody.
absl::StatusOr<std::uint64_t> UntouchedBytes(SyntheticEngine& test) {
  const AddressRange all = test->arena().range(test->workspace());
  Engine& engine = *test.test;
  HOLDFAST_RETURN_IF_ERROR(engine.device().Fill(engine.lane().stream(), all.base, 0xCD, all.bytes));
  for (Graph* graph : engine.graphs().graphs()) HOLDFAST_RETURN_IF_ERROR(graph->Replay());
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes, ReadBytes(engine, all));
  std::uint64_t untouched = 0;
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    const bool canary = std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                    bytes.begin() + static_cast<std::ptrdiff_t>(at) + 8,
                                    [](std::uint8_t b) { return b == 0xCD; });
    if (canary) untouched += 8;
  }
  return untouched;
}

TEST(PathGatingTest, TheBufferIsReservedIfAndOnlyIfItsPathIsTaken) {
  // Verifies: heads 16 take the mixed batch and reserve no prefill context; heads 64 take the bf16
  // prefill and reserve it; hisparse sends 16 heads there, too.
  const struct {
    const char* spec;
    const char* path;
    bool reserves;
  } cases[] = {
      {"mla_sparse:heads=16", "fp8_mixed_batch", false},
      {"mla_sparse:heads=31", "fp8_mixed_batch", false},
      {"mla_sparse:heads=32", "bf16_prefill", true},
      {"mla_sparse:heads=64", "bf16_prefill", true},
      {"mla_sparse:heads=16,hisparse=1", "bf16_prefill", true},
      {"mla_sparse:heads=16,prefill_ranks=2,decode_ranks=2", "bf16_prefill", true},
      {"mla_sparse:heads=16,prefill_ranks=2", "fp8_mixed_batch", false},
      {"mla_sparse:heads=16,path_gating=0", "fp8_mixed_batch", true},  // the fault this is about
  };
  for (const auto& c : cases) {
    ASSERT_OK_AND_ASSIGN(const auto stack, MakeStack(c.spec));
    EXPECT_EQ(stack->layers()[0].declaration().path, c.path) << c.spec;
    EXPECT_EQ(FindRequest(stack->layers()[0], "prefill_context") != nullptr, c.reserves) << c.spec;
  }
}

TEST(PathGatingTest, PublishedFiguresOfOneConfiguration) {
  // Verifies: heads 16, 8192 tokens, 786432 context, factor 2: 3,238,002,688 B ungated,
  // 1,426,063,360 B gated; beside an indexer's slot the net saving is what the indexer leaves.
  const SyntheticLimits limits{
      .max_batched_tokens = 8192, .max_sequences = 16, .max_model_len = 786432};
  const PathBudget budget{.bytes = 80 * kGiB, .other_bytes = 20 * kGiB, .granularity = 2 * kMiB};
  ASSERT_OK_AND_ASSIGN(const PathSaving alone,
                       Saving("flashmla_sparse:heads=16,prefill_factor=2", limits, budget));
  EXPECT_EQ(alone.ungated_slot_bytes, 3'238'002'688u);
  EXPECT_EQ(alone.gated_slot_bytes, 1'426'063'360u);
  EXPECT_EQ(alone.gross_bytes, 1'811'939'328u);
  EXPECT_EQ(alone.net_bytes, 1'811'939'328u);  // a whole number of granules
  EXPECT_EQ(alone.block_bytes, 41'984u);
  EXPECT_NEAR(static_cast<double>(alone.gained_blocks()), 1'811'939'328.0 / 41'984, 1);
  EXPECT_TRUE(alone.Agrees());
  ASSERT_EQ(alone.unread.size(), 1u);
  EXPECT_EQ(alone.unread[0].name, "prefill_context");
  EXPECT_EQ(alone.unread[0].selected_path, "fp8_mixed_batch");

  ASSERT_OK_AND_ASSIGN(
      const PathSaving beside,
      Saving("flashmla_sparse:heads=16,prefill_factor=2,layers=2+sparse_indexer:prefill_factor=2",
             limits, budget));
  EXPECT_EQ(beside.gross_bytes, alone.gross_bytes);  // two layers share the buffer
  EXPECT_EQ(beside.unread[0].layers, 2u);
  EXPECT_EQ(beside.ungated_slot_bytes, alone.ungated_slot_bytes);
  EXPECT_EQ(beside.gated_owner, "layer 2 sparse_indexer");
  EXPECT_GE(beside.gated_slot_bytes, 1'661'992'960u);  // 16 * 786432 * 132 + 1 MiB, and logits
  EXPECT_LT(beside.net_bytes, beside.gross_bytes);
  EXPECT_TRUE(beside.Agrees());
  const std::string text = PathSavingText(beside);
  for (const char* word : {"prefill_context", "1811939328 B", "sparse_indexer", "KV blocks"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
}

TEST(PathGatingTest, NothingIsSavedWhereThePathReadsTheBuffer) {
  // Verifies: heads 64 read the context: gross, net and gain are 0.
  ASSERT_OK_AND_ASSIGN(const PathSaving saving,
                       Saving("mla_sparse:heads=64,split_parts=4", SmallLimits(), {.bytes = kGiB}));
  EXPECT_TRUE(saving.unread.empty());
  EXPECT_EQ(saving.gross_bytes, 0u);
  EXPECT_EQ(saving.net_bytes, 0u);
  EXPECT_EQ(saving.gained_blocks(), 0);
  EXPECT_TRUE(saving.Agrees());
}

TEST(PathGatingTest, EverySlotSavesOnceAndBadBudgetsAreRefused) {
  // Verifies: micro-batches and lanes multiply; no slots, no granularity, no layers are errors.
  const PathBudget one{.bytes = kGiB};
  PathBudget four = one;
  four.slots = 4;
  ASSERT_OK_AND_ASSIGN(const PathSaving a, Saving("mla_sparse:heads=16", SmallLimits(), one));
  ASSERT_OK_AND_ASSIGN(const PathSaving b, Saving("mla_sparse:heads=16", SmallLimits(), four));
  EXPECT_EQ(b.gross_bytes, 4 * a.gross_bytes);
  EXPECT_EQ(b.net_bytes, 4 * a.net_bytes);
  EXPECT_TRUE(b.Agrees());
  PathBudget bad = one;
  bad.slots = 0;
  EXPECT_THAT(Saving("mla_sparse", SmallLimits(), bad), IsErrorKind(ErrorKind::kInvalidArgument));
  bad = one;
  bad.granularity = 0;
  EXPECT_THAT(Saving("mla_sparse", SmallLimits(), bad), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(SavingOfPaths({}, one), IsErrorKind(ErrorKind::kInvalidArgument));
  PathSaving wrong = b;  // the control of Agrees
  wrong.gated_blocks += 2;
  EXPECT_FALSE(wrong.Agrees());
}

// A device with room for some of the largest cache.
EngineOptions TightOptions() {
  EngineOptions options = SmallOptions();
  options.max_batch = 32;
  options.max_sequence = 1024;
  options.chunk_bytes = 2 * kMiB;
  return options;
}

TEST(PathGatingTest, TwoEnginesDifferByTheBlocksThatWerePredicted) {
  // Verifies: the same model with and without gating on the same device: the workspace's pages drop
  // by the net saving, and the cache has the gain in blocks, as computed before, within one block.
  const std::string spec = "mla_sparse:heads=16,split_parts=2,prefill_factor=8,layers=2";
  const DeviceOptions small{.host_capacity_bytes = 52 * kMiB};
  ASSERT_OK_AND_ASSIGN(SyntheticEngine gated,
                       MakeSyntheticEngine(spec, TightOptions(), TestHostDevice(small)));
  ASSERT_OK_AND_ASSIGN(SyntheticEngine ungated,
                       MakeSyntheticEngine("mla_sparse:heads=16,split_parts=2,prefill_factor=8,"
                                           "path_gating=0,layers=2",
                                           TightOptions(), TestHostDevice(small)));
  const auto workspace_pages = [](SyntheticEngine& test) {
    for (const TagBytes& tag : test->arena().bytes_by_tag()) {
      if (tag.tag == kWorkspaceTag) return tag.committed_bytes;
    }
    return std::uint64_t{0};
  };
  ASSERT_LT(gated->kv_plan().pages, gated->kv_plan().most_pages);  // the budget is what limits it
  // All that lies in the workspace beside the layers' requests: input, output, rows.
  std::uint64_t beside = 0;
  for (const SpanInfo& span : gated->arena().spans()) {
    if (span.spec.tag == kWorkspaceTag) beside += AlignUp(span.range.bytes, kScratchAlignment);
  }
  beside -= gated.stack->layers()[0].packed_bytes();
  ASSERT_OK_AND_ASSIGN(
      const PathSaving saving,
      Saving(spec, {.max_batched_tokens = 32, .max_sequences = 32, .max_model_len = 1024},
             {.bytes = gated->kv_plan().budget_bytes,
              .other_bytes = gated->kv_plan().used_bytes - workspace_pages(gated),
              .beside_bytes = beside,
              .granularity = gated.device().info().granularity}));
  EXPECT_EQ(saving.net_bytes, workspace_pages(ungated) - workspace_pages(gated));
  EXPECT_EQ(saving.gross_bytes, 8u * 1024 * 576 * 2);
  EXPECT_GT(saving.gained_blocks(), 50);
  const std::int64_t measured = gated->kv_plan().pages - ungated->kv_plan().pages;
  EXPECT_LE(std::abs(measured - saving.gained_blocks()), 1);
}

TEST(PathGatingTest, AReservationNobodyReadsIsNoticed) {
  // Verifies: after every bucket has run, a gated workspace has no untouched bytes but the packing.
  // Negative control: the ungated reservation leaves the whole prefill context.
  const std::uint64_t context = 5u * 96 * 576 * 2;
  ASSERT_OK_AND_ASSIGN(SyntheticEngine gated,
                       MakeSyntheticEngine("mla_sparse:heads=16,split_parts=2"));
  ASSERT_OK_AND_ASSIGN(const std::uint64_t packing, UntouchedBytes(gated));
  EXPECT_LT(packing, 8u * kScratchAlignment);
  ASSERT_OK_AND_ASSIGN(SyntheticEngine other,
                       MakeSyntheticEngine("mla_sparse:heads=64,split_parts=2"));
  ASSERT_OK_AND_ASSIGN(const std::uint64_t other_packing, UntouchedBytes(other));
  EXPECT_LT(other_packing, 8u * kScratchAlignment);
  ASSERT_OK_AND_ASSIGN(SyntheticEngine ungated,
                       MakeSyntheticEngine("mla_sparse:heads=16,split_parts=2,path_gating=0"));
  ASSERT_OK_AND_ASSIGN(const std::uint64_t unread, UntouchedBytes(ungated));
  EXPECT_GE(unread, context);
  EXPECT_LT(unread, context + 8 * kScratchAlignment);
}

TEST(PathGatingTest, ACallOfTheOtherPathFailsByItself) {
  // Verifies: forced to the bf16 prefill at run time (64 heads; hisparse), a layer that declared
  // the mixed batch is refused with both paths, enqueues nothing, and the next call is as ever. A
  // configuration of the same path is not refused.
  ASSERT_OK_AND_ASSIGN(SyntheticEngine test,
                       MakeSyntheticEngine("gated_delta_net+mla_sparse:heads=16"));
  const std::vector<GenerateRequest> requests = MixedRequests(4);
  ASSERT_OK_AND_ASSIGN(const auto golden, test->Generate(requests));
  ASSERT_OK_AND_ASSIGN(EagerPass pass, EagerPass::Make(test, 2));
  ASSERT_OK_AND_ASSIGN(const auto sound, pass.Run(0));
  AttentionConfig heads = test.stack->layers()[1].config(), hisparse = heads, same = heads;
  heads.heads = 64;
  hisparse.hisparse = true;
  same.heads = 20;
  for (const AttentionConfig& forced : {heads, hisparse}) {
    test.stack->Plant({.call = SyntheticPlants::Call{.layer = 1, .config = forced}});
    const auto refused = pass.Run(0);
    EXPECT_THAT(refused, IsErrorKind(ErrorKind::kPlanMismatch));
    EXPECT_EQ(GetErrorInfo(refused.status())->object, "mla_sparse");
    const std::string text(refused.status().message());
    EXPECT_NE(text.find("bf16_prefill"), std::string::npos) << text;
    EXPECT_NE(text.find("fp8_mixed_batch"), std::string::npos) << text;
    EXPECT_THAT(test->graphs().Recapture(test->workspace()), IsErrorKind(ErrorKind::kPlanMismatch));
    ASSERT_OK_AND_ASSIGN(const auto replayed, test->Generate(requests));
    EXPECT_EQ(golden, replayed);  // graphs are what was captured
    test.stack->Plant({});
    ASSERT_OK_AND_ASSIGN(const auto again, pass.Run(0));
    EXPECT_EQ(sound, again);
  }
  test.stack->Plant({.call = SyntheticPlants::Call{.layer = 1, .config = same}});
  EXPECT_THAT(pass.Run(0), IsOk());
}

TEST(PathGatingTest, AReservationForTheOtherPathIsRefusedByTheScratchItself) {
  // Verifies: a step of the bf16 prefill does not run in scratch that was planned for the mixed
  // batch, nor the other way round: the requests differ from the plan's.
  ASSERT_OK_AND_ASSIGN(SyntheticEngine mixed, MakeSyntheticEngine("mla_sparse:heads=16"));
  ASSERT_OK_AND_ASSIGN(SyntheticEngine prefill, MakeSyntheticEngine("mla_sparse:heads=64"));
  ASSERT_OK_AND_ASSIGN(EagerPass mixed_pass, EagerPass::Make(mixed, 2));
  ASSERT_OK_AND_ASSIGN(EagerPass prefill_pass, EagerPass::Make(prefill, 2));
  EXPECT_THAT(prefill_pass.RunWith(mixed_pass.plan(), 0), IsErrorKind(ErrorKind::kPlanMismatch));
  // This plan does not even fit the workspace of the smaller path.
  EXPECT_THAT(mixed_pass.RunWith(prefill_pass.plan(), 0), IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_THAT(prefill_pass.Run(0), IsOk());
  EXPECT_THAT(mixed_pass.Run(0), IsOk());
}

}  // namespace
}  // namespace holdfast
