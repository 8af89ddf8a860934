// Verifies every sizing rule against the field's vectors: figures read in other engines' sources
// and logs, or worked out from them. Rules are evaluated from text, as `holdfast size` does it.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "attention/sizing/rule.h"
#include "attention/sizing/sparse_indexer.h"
#include "gmock/gmock.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

absl::StatusOr<SizingResult> Size(const std::string& rule, const std::string& arguments) {
  const absl::StatusOr<SizingRule> found = FindRule(AttentionSizingRules(), rule);
  if (!found.ok()) return found.status();
  const std::vector<std::string> split = absl::StrSplit(arguments, ' ', absl::SkipEmpty());
  return Evaluate(*found, split);
}

struct TotalVector {
  const char* rule;
  const char* arguments;
  std::uint64_t bytes;
};
const TotalVector kTotals[] = {
    // FlashMLA sparse: staging and bf16 context of one configuration, without and with path gating.
    {"flashmla_sparse",
     "heads=16 max_num_batched_tokens=8192 max_model_len=786432 prefill_factor=2 path_gating=0",
     3'238'002'688},
    {"flashmla_sparse",
     "heads=16 max_num_batched_tokens=8192 max_model_len=786432 prefill_factor=2", 1'426'063'360},
    {"flashmla_sparse",
     "heads=16 max_num_batched_tokens=8192 max_model_len=786432 prefill_factor=2 path_gating=1 "
     "quantized=1 hisparse=0 pcp=1 dcp=1 arch=sm90",
     1'426'063'360},
    // A version without staging and without gating.
    {"flashmla_sparse",
     "heads=16 max_num_batched_tokens=8192 max_model_len=163840 staging=0 path_gating=0",
     1'094'713'344},
    // Sparse indexer.
    {"sparse_indexer", "max_model_len=163840", 866'123'776},
    {"sparse_indexer", "max_model_len=1000000", 5'281'048'576},
    {"sparse_indexer", "max_model_len=786432 prefill_factor=2", 1'661'992'960},
    // FlashInfer.
    {"flashinfer_mla", "", 134'217'728},
    {"flashinfer_mla", "lse=1", 268'435'456},
    {"flashinfer_mla", "dcp=2", 268'435'456},
    {"flashinfer_sparse_mla", "heads=16 max_num_batched_tokens=8192", 413'138'944},
    {"flashinfer_sparse_mla", "heads=16 max_num_batched_tokens=8192 dcp=2", 951'058'432},
    {"flashinfer_sparse_mla", "heads=16 max_num_batched_tokens=8192 dcp=4", 1'487'929'344},
    {"flashinfer_sparse_mla", "heads=16 max_num_batched_tokens=8192 dcp=8", 2'561'671'168},
    // DeepSeek-V4.
    {"deepseek_v4", "kernel=flashinfer", 134'217'728},
    {"deepseek_v4", "max_model_len=1048576 max_num_batched_tokens=8192 compress_ratio=4",
     1'107'816'448},
    {"deepseek_v4", "max_model_len=1048576 max_num_batched_tokens=8192 compress_ratio=128",
     67'629'056},
    {"deepseek_v4", "max_model_len=1048576 max_num_batched_tokens=8192 compress_ratio=1",
     34'074'624},
    {"deepseek_v4", "max_model_len=1048576 max_num_batched_tokens=8192 compress_ratio=0",
     34'074'624},
    {"deepseek_v4",
     "kernel=sm120_decode max_num_batched_tokens=64 heads=64 topk=128 extra_topk=512",
     41'943'040 + 163'840},
    // Others.
    {"triton_mla", "max_num_seqs=256 heads=128", 268'959'744},
    {"chunked_prefill", "max_model_len=163840 max_num_seqs=256", 75'497'472},
    {"gated_delta_net", "max_num_seqs=64 num_speculative_tokens=3 max_capture_size=256", 16'648},
    {"gated_delta_net", "max_num_seqs=1000 num_speculative_tokens=3 max_capture_size=256", 16'648},
    {"moe", "max_num_batched_tokens=8192 topk=8 n=7168 k=7168", 1'879'048'192},
    {"moe", "max_num_batched_tokens=8192 topk=8 n=2048 k=7168", 1'879'048'192},
    // Pages.
    {"fp8_kv_page", "", 41'984},
    {"fp8_kv_page", "layout=fp8_ds_mla block_size=64 layers=61", 61 * 41'984},
    {"fp8_kv_page", "layout=deepseek_v4 block_size=256", 149'760},
    {"fp8_kv_page", "layout=deepseek_v4 block_size=64", 37'440},
    {"fp8_kv_page", "layout=deepseek_v41 block_size=256", 135'168},
    {"fp8_kv_page", "layout=deepseek_v41 block_size=64", 33'792},
    {"fp8_kv_page", "layout=nvfp4_ds_mla block_size=64", 22'528},
    {"kv_page", "", 73'728},  // MLA bf16, 64 tokens
    {"kv_page", "block_size=16 kv_heads=8 key_dim=128 value_dim=128", 16 * 8 * 256 * 2},
    {"kv_page", "block_size=16 kv_heads=8 key_dim=128 value_dim=128 element_bytes=1 head_scales=1",
     16 * 8 * 256 + 2 * 16 * 8 * 4},
    {"kv_state", "key_heads=16 value_heads=32 conv_width=1", 2'097'152},  // half of 4 MiB traffic
    {"kv_state", "key_heads=16 value_heads=32", 2'097'152 + 3 * 64 * 128 * 2},
    // Split-KV: the bound for every shape of a device, of its own shapes, and FlashMLA's.
    {"split_kv", "heads=64", 34'407'936},
    {"split_kv", "heads=16", 34'407'936},
    {"split_kv", "heads=128 max_num_seqs=128", 130 * 128 * 513 * 4},
    {"split_kv", "heads=128 query_len=2", 64 * 256 * 513 * 4},
    {"split_kv", "heads=128 query_len=4 max_num_seqs=256", 30 * 512 * 513 * 4},
    {"split_kv", "heads=64 query_len=32768 max_num_seqs=1", 0},
    {"split_kv", "heads=16 max_num_seqs=1 pad_rows=0", 132 * 16 * 513 * 4},
    {"split_kv", "heads=64 max_num_seqs=128 scheme=flashmla", 260 * 64 * 513 * 4},
};

TEST(SizingVectors, TotalsAreTheFields) {
  for (const TotalVector& v : kTotals) {
    SCOPED_TRACE(std::string(v.rule) + " " + v.arguments);
    ASSERT_OK_AND_ASSIGN(const SizingResult result, Size(v.rule, v.arguments));
    ASSERT_OK_AND_ASSIGN(const std::uint64_t total, TotalBytes(result.requests));
    EXPECT_EQ(total, v.bytes);
  }
}

std::map<std::string, std::uint64_t> Parts(const std::string& rule, const std::string& arguments) {
  const absl::StatusOr<SizingResult> result = Size(rule, arguments);
  EXPECT_OK(result);
  std::map<std::string, std::uint64_t> parts;
  if (!result.ok()) return parts;
  for (const DeclaredRequest& request : result->requests) {
    EXPECT_FALSE(request.why.empty()) << request.name;
    EXPECT_GT(request.bytes, 0u) << request.name;
    parts[request.name] = request.bytes;
  }
  EXPECT_EQ(parts.size(), result->requests.size()) << "a name is used twice";
  return parts;
}

TEST(SizingVectors, StagingOfSixteenHeadsIsFourBuffers) {
  EXPECT_THAT(
      Parts("flashmla_sparse",
            "heads=16 max_num_batched_tokens=8192 max_model_len=786432 prefill_factor=2"),
      UnorderedElementsAre(Pair("q_concat", 150'994'944), Pair("q_padded", 603'979'776),
                           Pair("out_padded", 536'870'912), Pair("out_compact", 134'217'728)));
}

// The bf16 context at several lengths and factors.
TEST(SizingVectors, PrefillContexts) {
  const struct {
    int factor;
    std::int64_t length;
    std::uint64_t bytes;
  } cases[] = {{5, 163840, 943'718'400},
               {5, 262144, 1'509'949'440},
               {2, 786432, 1'811'939'328},
               {5, 786432, 4'529'848'320},
               {2, 1048576, 2'415'919'104}};
  for (const auto& c : cases) {
    const std::string arguments =
        "heads=64 max_num_batched_tokens=8192 max_model_len=" + std::to_string(c.length) +
        " prefill_factor=" + std::to_string(c.factor);
    EXPECT_EQ(Parts("flashmla_sparse", arguments)["prefill_context"], c.bytes) << arguments;
  }
}

TEST(SizingVectors, ContextRanksShareTheContextAndGatherIt) {
  const std::string shape = "heads=16 max_num_batched_tokens=8192 max_model_len=163840 ";
  auto both = Parts("flashmla_sparse", shape + "pcp=2 dcp=4");
  EXPECT_EQ(both["prefill_context"], 943'718'400u / 4);
  EXPECT_EQ(both["gathered_context"], 943'718'400u);
  auto bf16 = Parts("flashmla_sparse", shape + "pcp=2 dcp=4 quantized=0");
  EXPECT_EQ(bf16.count("prefill_context"), 0u);
  EXPECT_EQ(bf16["gathered_context"], 943'718'400u);
  for (const char* one : {"pcp=2", "dcp=4"}) {  // either alone leaves the mixed batch
    EXPECT_EQ(Parts("flashmla_sparse", shape + one).count("prefill_context"), 0u) << one;
  }
  EXPECT_EQ(Parts("flashmla_sparse", shape + "hisparse=1")["prefill_context"], 943'718'400u);
}

TEST(SizingVectors, HeadsPadAsTheKernelsWantThem) {
  const std::string shape = " max_num_batched_tokens=1 max_model_len=1 ";
  const auto padded = [&](const std::string& rest) {
    return Parts("flashmla_sparse", shape + rest)["out_padded"] / (512 * 2);
  };
  EXPECT_EQ(padded("heads=16"), 64u);
  EXPECT_EQ(padded("heads=64"), 64u);
  EXPECT_EQ(padded("heads=65"), 128u);
  EXPECT_EQ(padded("heads=16 arch=sm100"), 64u);  // decode only
  EXPECT_EQ(padded("heads=32 arch=sm100"), 128u);
  EXPECT_EQ(padded("heads=16 arch=sm100 quantized=0"), 128u);
  auto bf16 = Parts("flashmla_sparse", shape + "heads=16 quantized=0");
  EXPECT_EQ(bf16["q_concat"], 64u * 576 * 2);
  EXPECT_EQ(bf16.count("q_padded"), 0u);
}

TEST(SizingVectors, Nvfp4Staging) {
  const std::string arguments =
      "max_model_len=163840 max_num_batched_tokens=8192 max_num_seqs=1024 topk=2048";
  EXPECT_THAT(
      Parts("flashinfer_nvfp4", arguments),
      UnorderedElementsAre(Pair("prefill_staging", 471'859'200),
                           Pair("decode_staging", 301'989'888), Pair("decode_indices", 2'097'152)));
  EXPECT_THAT(Parts("flashinfer_nvfp4", arguments + " native=1"),
              ElementsAre(Pair("prefill_staging", 471'859'200)));
  // Few sequences with drafts, and a small pass, bound the rows too.
  EXPECT_EQ(Parts("flashinfer_nvfp4",
                  "max_model_len=64 max_num_batched_tokens=8192 max_num_seqs=8 "
                  "num_speculative_tokens=3 topk=1")["decode_staging"],
            32u * 576);
}

TEST(SizingVectors, SplitKvOfAMixedBatchAsFlashMlaWouldHoldIt) {
  EXPECT_EQ(Parts("split_kv", "heads=64 query_len=32768 max_num_seqs=1 scheme=flashmla")["o_accum"],
            8'589'934'592u);
  auto plan = Parts("split_kv", "heads=64 max_num_seqs=128 plan=1");
  EXPECT_EQ(plan["plan"], 132u * 32);
  EXPECT_EQ(plan["split_prefix"], 129u * 4);
}

TEST(SizingVectors, DeepSeekV4IndexListsAndDecodeParts) {
  auto lists = Parts("deepseek_v4",
                     "max_model_len=1048576 max_num_batched_tokens=8192 compress_ratio=4 "
                     "combined_topk=640");
  EXPECT_EQ(lists["kv_chunk"], 1'107'816'448u);
  EXPECT_EQ(lists["topk_indices"], 8192u * 640 * 4);
  EXPECT_EQ(lists["topk_lengths"], 8192u * 4);
  EXPECT_THAT(Parts("deepseek_v4",
                    "kernel=sm120_decode max_num_batched_tokens=8192 heads=64 extra_topk=512"),
              UnorderedElementsAre(Pair("mid_out", 41'943'040), Pair("mid_lse", 163'840)));
}

TEST(SizingVectors, IndexerLogits) {
  EXPECT_EQ(Parts("sparse_indexer", "max_model_len=786432 decode_rows=1024")["decode_logits"],
            3072u * 1024 * 1024);
  EXPECT_EQ(IndexerKeyBytes(128, false), 132);
  EXPECT_EQ(IndexerKeyBytes(128, true), 68);
  EXPECT_EQ(IndexerLogitRows(512 << 20, 163840), 819);
  EXPECT_EQ(IndexerLogitRows(1, 163840), 1);
  EXPECT_EQ(IndexerLogitRows(1024, 0), 256);
}

// Field case 24: the fixed default of 394 MiB is below what this shape needs, and one knows before
// anything is captured.
TEST(SizingVectors, FieldCase24NeedOfManySequencesIsAboveTheFixedDefault) {
  ASSERT_OK_AND_ASSIGN(const SizingResult result,
                       Size("flashinfer_gqa", "heads=64 kv_heads=4 head_dim=256 tiles=528"));
  EXPECT_GT(*TotalBytes(result.requests), 413'138'944u);
  // FlashInfer's own examples at 16 and 128 rows a tile.
  EXPECT_EQ(Parts("flashinfer_gqa", "heads=64 kv_heads=8")["partial_out"], 17'301'504u);
  EXPECT_EQ(Parts("flashinfer_gqa", "heads=64 kv_heads=8 tile_rows=128")["partial_out"],
            138'412'032u);
}

TEST(SizingVectors, ChunkedPrefillRowsFollowTheirBounds) {
  const auto rows = [](const std::string& arguments) {
    return Parts("chunked_prefill", arguments)["context_chunk"] / (576 * 2);
  };
  EXPECT_EQ(rows("max_model_len=100 max_num_seqs=1"), 832u);  // 800, to whole blocks
  EXPECT_EQ(rows("max_model_len=100 max_num_seqs=64"), 16384u);
  EXPECT_EQ(rows("max_model_len=163840 max_num_seqs=4 index_topk=2048"), 8192u);
  EXPECT_EQ(
      Parts("chunked_prefill", "max_model_len=163840 max_num_seqs=256 heads=128")["up_projected"],
      65536ull * 128 * 256 * 2);
}

TEST(SizingVectors, CutlassCountsItsWorstBatch) {
  EXPECT_THAT(Parts("cutlass_mla", "max_num_seqs=1 max_model_len=128"),
              UnorderedElementsAre(Pair("workspace", 134'217'728), Pair("out_padded", 131'072)));
  // 74 pieces at batch 1 and at batch 74; beyond, each sequence is one piece.
  EXPECT_EQ(Parts("cutlass_mla", "max_num_seqs=1024 max_model_len=163840")["workspace"],
            1024u * 128 * 2052);
}

}  // namespace
}  // namespace holdfast
