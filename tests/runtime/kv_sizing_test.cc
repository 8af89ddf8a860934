// Verifies the three ways to size the KV cache against the field's vectors, and that impossible
// inputs are refused before anything is divided by them.
#include "runtime/kv_sizing.h"

#include <map>
#include <string>
#include <vector>

#include "device/bytes.h"
#include "gmock/gmock.h"
#include "runtime/sizing_rules.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kG = std::int64_t{1} << 30, kM = std::int64_t{1} << 20;

const ExtensibleKv kMeasured = {.init_free = 80 * kG,
                                .free = 20 * kG,
                                .committed = 2 * kG,
                                .requested = 80 * kG,
                                .peak = 4 * kG,
                                .block_bytes = kM};

TEST(KvSizing, ExtensibleVectors) {
  ExtensibleKv in = kMeasured;
  EXPECT_EQ(ExtensibleKvBlocks(in)->blocks, 15360);
  EXPECT_EQ(ExtensibleKvBlocks(in)->margin, 3 * kG);
  EXPECT_EQ(ExtensibleKvBlocks(in)->non_kv, 58 * kG);
  in.requested = 60 * kG;
  EXPECT_EQ(ExtensibleKvBlocks(in)->blocks, 0);
  EXPECT_EQ(ExtensibleKvBlocks(in)->available, -2 * kG);
  in.requested = 80 * kG, in.peak = kG;
  EXPECT_EQ(ExtensibleKvBlocks(in)->blocks, 20480);
  in.extra = kM + 1;  // what is still to come is not given away, to the byte
  EXPECT_EQ(ExtensibleKvBlocks(in)->blocks, 20478);
}

// A neighbour that takes 3 GiB meanwhile lowers what is free by as much, and raises what counts as
// used; own bytes are the engine's to measure. Here: one that gives memory back is not our gain.
TEST(KvSizing, MoreFreeThanAtTheStartIsNotABudget) {
  ExtensibleKv in = kMeasured;
  in.init_free = 10 * kG, in.requested = 16 * kG;
  ASSERT_OK_AND_ASSIGN(const KvSizing sizing, ExtensibleKvBlocks(in));
  EXPECT_EQ(sizing.non_kv, -12 * kG);
  EXPECT_EQ(sizing.available, (22 - 3 - 4) * kG);  // what is there bounds it
}

TEST(KvSizing, CeilingVector) {
  WarmupCeilingKv in = {.free = 20 * kG,
                        .physical = 2 * kG,
                        .peak = 3 * kG,
                        .segments = 61,
                        .granule = 2 * kM,
                        .block_bytes = kM};
  EXPECT_EQ(WarmupCeilingKvBlocks(in)->blocks, 17030);
  in.capacity_blocks = 1000;
  EXPECT_EQ(WarmupCeilingKvBlocks(in)->blocks, 1000);
  in.capacity_blocks = 100'000, in.committed_blocks = 18'000;
  EXPECT_EQ(WarmupCeilingKvBlocks(in)->blocks, 18'000);
  in.committed_blocks = 0, in.peak = 0;  // a tenth of the headroom is kept for what was not seen
  EXPECT_EQ(WarmupCeilingKvBlocks(in)->reserve, 22 * kG / 10);
}

TEST(KvSizing, ClassicTakesTheEstimatesOff) {
  ClassicKv in = {.total = 100 * kG,
                  .free = 99 * kG,
                  .utilization = 900'000'000,
                  .non_kv = 40 * kG,
                  .graphs = 2 * kG,
                  .other = kG,
                  .block_bytes = kM};
  EXPECT_EQ(ClassicKvBlocks(in)->blocks, 47 * 1024);
  in.graphs = 0;  // field case 25: no graphs, and the cache is larger by exactly their estimate
  EXPECT_EQ(ClassicKvBlocks(in)->blocks, 49 * 1024);
  in.non_kv = 95 * kG;
  EXPECT_EQ(ClassicKvBlocks(in)->blocks, 0);
  in.free = 80 * kG;
  const absl::Status full = ClassicKvBlocks(in).status();
  EXPECT_THAT(full, IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_EQ(GetErrorInfo(full)->need, static_cast<std::uint64_t>(90 * kG));
  EXPECT_EQ(GetErrorInfo(full)->have, static_cast<std::uint64_t>(80 * kG));
}

TEST(KvSizing, UtilizationIsRoundedUpExactly) {
  ClassicKv in = {.total = 3, .free = 3, .utilization = 500'000'000, .block_bytes = 1};
  EXPECT_EQ(ClassicKvBlocks(in)->requested, 2);
  in.total = in.free = std::int64_t{1} << 60, in.utilization = 999'999'999;
  EXPECT_EQ(ClassicKvBlocks(in)->requested, 1152921503453925472);  // 2^60 - 2^60 / 10^9, up
  in.utilization = kShareOne;
  EXPECT_EQ(ClassicKvBlocks(in)->requested, std::int64_t{1} << 60);
}

TEST(KvSizing, InputsOutOfRangeAreRefusedByName) {
  ExtensibleKv in = kMeasured;
  in.block_bytes = 0;
  EXPECT_THAT(ExtensibleKvBlocks(in), IsErrorKind(ErrorKind::kInvalidArgument));
  in = kMeasured;
  in.peak = -1;
  EXPECT_THAT(std::string(ExtensibleKvBlocks(in).status().message()), HasSubstr("peak is -1"));
  in.peak = INT64_MAX;
  EXPECT_THAT(ExtensibleKvBlocks(in), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(
      WarmupCeilingKvBlocks({.block_bytes = 1, .committed_blocks = 2, .capacity_blocks = 1}),
      IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(ClassicKvBlocks({.utilization = kShareOne + 1, .block_bytes = 1}),
              IsErrorKind(ErrorKind::kInvalidArgument));
}

std::map<std::string, std::int64_t> Plan(const std::vector<std::string>& arguments) {
  const absl::StatusOr<SizingResult> result = Evaluate(KvPlanRule(), arguments);
  EXPECT_OK(result);
  std::map<std::string, std::int64_t> figures;
  if (!result.ok()) return figures;
  for (const SizingFigure& figure : result->figures) figures[figure.name] = figure.values.front();
  return figures;
}

TEST(KvSizing, RuleSizesByAnyOrderAndBudget) {
  EXPECT_EQ(Plan({"init_free=80GiB", "free=20GiB", "committed=2GiB", "requested=80GiB", "peak=4GiB",
                  "block_bytes=1MiB"})["blocks"],
            15360);
  EXPECT_EQ(Plan({"order=ceiling", "free=20GiB", "committed=2GiB", "peak=3GiB", "segments=61",
                  "granule=2MiB", "block_bytes=1MiB"})["blocks"],
            17030);
  EXPECT_EQ(Plan({"order=classic", "total=100GiB", "free=100GiB", "utilization=0.9", "non_kv=40GiB",
                  "block_bytes=1MiB"})["blocks"],
            50 * 1024);
  EXPECT_EQ(Plan({"kv_bytes=1GiB", "block_bytes=1MiB"})["usable_blocks"], 1023);
  EXPECT_EQ(Plan({"blocks=65", "block_size=16"})["tokens"], 1024);
}

// Field case 28, in figures: the null block is nobody's, and drafts take room.
TEST(KvSizing, FieldCase28RuleNamesMissingBlocks) {
  auto short_by_one = Plan({"blocks=64", "block_size=16", "max_model_len=1024"});
  EXPECT_EQ(short_by_one["needed_blocks"], 65);
  EXPECT_EQ(short_by_one["missing_blocks"], 1);
  EXPECT_EQ(Plan({"blocks=65", "block_size=16", "max_model_len=1024"})["missing_blocks"], 0);
  EXPECT_EQ(Plan({"blocks=65", "block_size=16", "max_model_len=1024",
                  "num_speculative_tokens=1"})["missing_blocks"],
            1);
}

TEST(KvSizing, RuleRefusesHalfAnOrder) {
  const std::vector<std::vector<std::string>> cases = {
      {"block_bytes=1MiB"},
      {"init_free=1GiB", "requested=1GiB"},
      {"block_bytes=1MiB", "order=classic", "free=1GiB"},
      {"block_bytes=1MiB", "order=ceiling"},
      {"block_bytes=1MiB", "kv_bytes=1GiB", "blocks=4"},
      {"block_bytes=1MiB", "order=measured"},
      {"block_bytes=1MiB", "utilization=1.1"}};
  for (const auto& arguments : cases) {
    EXPECT_THAT(Evaluate(KvPlanRule(), arguments), IsErrorKind(ErrorKind::kInvalidArgument))
        << testing::PrintToString(arguments);
  }
}

TEST(KvSizing, AllRulesAreListedOnceInOrder) {
  const std::vector<SizingRule> rules = AllSizingRules();
  for (std::size_t i = 1; i < rules.size(); ++i) EXPECT_LT(rules[i - 1].name, rules[i].name);
  for (const char* name :
       {"flashmla_sparse", "sparse_indexer", "flashinfer_mla", "flashinfer_sparse_mla",
        "deepseek_v4", "cutlass_mla", "triton_mla", "chunked_prefill", "gated_delta_net", "moe",
        "fp8_kv_page", "split_kv", "kv_plan", "capture_sizes"}) {
    EXPECT_OK(FindRule(rules, name));
  }
  const std::string help = RuleHelp(KvPlanRule());
  for (const auto& [figure, meaning] : KvPlanRule().figures) {
    EXPECT_THAT(help, HasSubstr(figure + ": " + meaning));
  }
}

}  // namespace
}  // namespace holdfast
