// Verifies what backends declare: a buffer is there if and only if its path is taken, and a run
// that takes another path than was declared is caught, that call alone.
#include "attention/declaration.h"

#include <algorithm>
#include <string>
#include <vector>

#include "attention/declare/mla_dense.h"
#include "attention/declare/mla_sparse.h"
#include "attention/declare/mla_windowed.h"
#include "attention/sizing/kv_pages.h"
#include "attention/sizing/sparse_indexer.h"
#include "gmock/gmock.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

AttentionConfig Config(std::int64_t heads) {
  return {.max_batched_tokens = 8192,
          .max_sequences = 64,
          .max_model_len = 786432,
          .heads = heads,
          .key_heads = heads,
          .quantized = true,
          .prefill_factor = 2};
}
AttentionConfig Bf16(std::int64_t heads) {
  AttentionConfig config = Config(heads);
  config.quantized = false;
  return config;
}
auto Names(const std::string& name) { return Contains(Field(&DeclaredRequest::name, name)); }
std::uint64_t Scratch(const AttentionDeclaration& d) { return *TotalBytes(d.scratch); }

// Field case 27: 1.69 GiB reserved for a path this configuration never takes.
TEST(Declaration, FieldCase27ContextBufferExistsOnlyOnThePathThatReadsIt) {
  for (const char* backend : {"mla_sparse", "flashmla_sparse"}) {
    ASSERT_OK_AND_ASSIGN(const AttentionDeclaration mixed, Declare(backend, Config(16)));
    EXPECT_EQ(mixed.path, "fp8_mixed_batch");
    EXPECT_THAT(mixed.scratch, Not(Names("prefill_context")));
    ASSERT_OK_AND_ASSIGN(const AttentionDeclaration bf16, Declare(backend, Config(64)));
    EXPECT_EQ(bf16.path, "bf16_prefill");
    EXPECT_THAT(bf16.scratch, Names("prefill_context"));

    AttentionConfig ungated = Config(16);
    ungated.path_gating = false;
    ASSERT_OK_AND_ASSIGN(const AttentionDeclaration both, Declare(backend, ungated));
    EXPECT_EQ(both.path, "fp8_mixed_batch");
    EXPECT_THAT(both.scratch, Names("prefill_context"));
  }
  AttentionConfig ungated = Config(16);
  ungated.path_gating = false;
  EXPECT_EQ(Scratch(*Declare("flashmla_sparse", Config(16))), 1'426'063'360u);
  EXPECT_EQ(Scratch(*Declare("flashmla_sparse", ungated)), 3'238'002'688u);
  EXPECT_EQ(Scratch(*Declare("mla_sparse", ungated)) - Scratch(*Declare("mla_sparse", Config(16))),
            1'811'939'328u + 2 * 131 * 64 * 513 * 4);  // and the splits it never makes
}

// Users of a slot overlay each other: what gating saves is the drop of their maximum, which the
// indexer's gathered keys now set.
TEST(Declaration, NetSavingIsTheDropOfTheSlotsMaximum) {
  const std::uint64_t indexer =
      *TotalBytes(*SparseIndexerRequests({.max_model_len = 786432, .prefill_factor = 2}));
  AttentionConfig config = Config(16);
  const std::uint64_t gated = Scratch(*Declare("flashmla_sparse", config));
  config.path_gating = false;
  const std::uint64_t ungated = Scratch(*Declare("flashmla_sparse", config));
  EXPECT_EQ(ungated - gated, 1'811'939'328u);  // gross
  EXPECT_EQ(std::max(gated, indexer), 1'661'992'960u);
  EXPECT_EQ(std::max(ungated, indexer) - std::max(gated, indexer), 1'576'009'728u);  // net
}

// The same predicates choose, reserve and check: over every configuration exactly one path selects,
// and the buffer follows it.
TEST(Declaration, PredicatesPartitionTheConfigurations) {
  int mixed = 0;
  for (const std::int64_t heads : {1, 16, 31, 32, 64, 128}) {
    for (int bits = 0; bits < 32; ++bits) {
      AttentionConfig c = Config(heads);
      c.quantized = bits & 1, c.hisparse = bits & 2;
      c.prefill_ranks = bits & 4 ? 2 : 1, c.decode_ranks = bits & 8 ? 2 : 1;
      c.arch = bits & 16 ? GpuArch::kSm100 : GpuArch::kSm90;
      ASSERT_OK_AND_ASSIGN(const AttentionDeclaration d, Declare("mla_sparse", c));
      EXPECT_NE(kSparseMixedBatch.Selects(c), kSparseBf16Prefill.Selects(c));
      EXPECT_EQ(d.path == kSparseMixedBatch.name(), kSparseMixedBatch.Selects(c));
      const bool read = d.path == kSparseBf16Prefill.name() && c.quantized;
      EXPECT_EQ(testing::Matches(Names("prefill_context"))(d.scratch), read);
      mixed += kSparseMixedBatch.Selects(c);
    }
  }
  EXPECT_EQ(mixed, 3 * 2 * 3);  // heads below 32, either arch, fp8 without hisparse, not both ranks
}

TEST(Declaration, ARunOnAnotherPathIsCaughtAndOnlyThatCallFails) {
  ASSERT_OK_AND_ASSIGN(const AttentionDeclaration d, Declare("mla_sparse", Config(16)));
  const PathCheck check = d.Check();
  EXPECT_OK(check.Check(kSparseMixedBatch));
  const absl::Status forced = check.Check(kSparseBf16Prefill);
  EXPECT_THAT(forced, IsErrorKind(ErrorKind::kPlanMismatch));
  EXPECT_EQ(GetErrorInfo(forced)->object, "mla_sparse");
  EXPECT_THAT(std::string(forced.message()), HasSubstr("bf16_prefill"));
  EXPECT_THAT(std::string(forced.message()), HasSubstr("fp8_mixed_batch"));
  EXPECT_OK(check.Check(kSparseMixedBatch));
}

// Negative control: a run that decides by a condition of its own, here one that forgot hisparse.
TEST(Declaration, AWrongPredicateAtRunTimeIsCaught) {
  const AttentionPath wrong("fp8_mixed_batch", [](const AttentionConfig& c) {
    return c.quantized && c.heads < kLeastHeadsForBf16Prefill;
  });
  const auto path_of_run = [&wrong](const AttentionConfig& c) {
    return wrong.Selects(c) ? std::string(wrong.name()) : std::string(kSparseBf16Prefill.name());
  };
  AttentionConfig config = Config(16);
  ASSERT_OK_AND_ASSIGN(const AttentionDeclaration agrees, Declare("mla_sparse", config));
  EXPECT_OK(agrees.Check().Check(path_of_run(config)));
  config.hisparse = true;
  ASSERT_OK_AND_ASSIGN(const AttentionDeclaration d, Declare("mla_sparse", config));
  EXPECT_THAT(d.Check().Check(path_of_run(config)), IsErrorKind(ErrorKind::kPlanMismatch));
}

// Negative controls: predicates that overlap or leave a gap.
TEST(Declaration, PredicatesThatDoNotPartitionAreABug) {
  const AttentionPath always("always", [](const AttentionConfig&) { return true; });
  const AttentionPath never("never", [](const AttentionConfig&) { return false; });
  EXPECT_EQ(std::string(ChoosePath("b", {never, always}, Config(1))->name()), "always");
  EXPECT_THAT(ChoosePath("b", {always, always}, Config(1)), IsErrorKind(ErrorKind::kInternal));
  EXPECT_THAT(ChoosePath("b", {never}, Config(1)), IsErrorKind(ErrorKind::kInternal));
  EXPECT_THAT(ChoosePath("b", {}, Config(1)), IsErrorKind(ErrorKind::kInternal));
}

TEST(Declaration, DenseNeedsScratchOnlyWhereItSplits) {
  ASSERT_OK_AND_ASSIGN(const AttentionDeclaration plain, Declare("mla_dense", Bf16(64)));
  EXPECT_EQ(plain.path, "single_pass");
  EXPECT_THAT(plain.scratch, IsEmpty());
  AttentionConfig split = Bf16(64);
  split.split_parts = 132;
  ASSERT_OK_AND_ASSIGN(const AttentionDeclaration d, Declare("mla_dense", split));
  EXPECT_EQ(d.path, "split_kv");
  EXPECT_EQ(Scratch(d), 34'407'936u);
  split.draft_tokens = 7, split.max_sequences = 4096;  // the bound holds for longer queries too
  EXPECT_EQ(Scratch(*Declare("mla_dense", split)), 34'407'936u);
  EXPECT_EQ(plain.kv.page_bytes, 73'728u);
  EXPECT_EQ(plain.kv.layout, "mla_bf16");
}

TEST(Declaration, PagesFollowTheCache) {
  EXPECT_EQ(Declare("mla_sparse", Config(16))->kv.page_bytes, 41'984u);
  EXPECT_EQ(Declare("mla_sparse", Config(16))->kv.layout, "fp8_ds_mla");
  EXPECT_EQ(Declare("mla_sparse", Bf16(16))->kv.page_bytes, 73'728u);
  EXPECT_EQ(Declare("sparse_indexer", Config(16))->kv.page_bytes, 64u * 132);
  AttentionConfig ranks = Config(16);
  ranks.prefill_ranks = 2, ranks.decode_ranks = 4;
  EXPECT_EQ(Declare("mla_sparse", ranks)->kv.context_ranks, 8);

  AttentionConfig v4 = Config(64);
  v4.page_tokens = 256, v4.compress_ratio = 4;
  ASSERT_OK_AND_ASSIGN(const AttentionDeclaration windowed, Declare("mla_windowed", v4));
  EXPECT_EQ(windowed.path, kWindowAndCompressed.name());
  EXPECT_EQ(windowed.kv.kind, KvKind::kWindow);
  EXPECT_EQ(windowed.kv.page_bytes, 149'760u);
  EXPECT_EQ(windowed.kv.window, 128);
  EXPECT_EQ(windowed.extra_kv.kind, KvKind::kFull);
  EXPECT_EQ(windowed.extra_kv.page_tokens, 256);
  EXPECT_EQ(windowed.extra_kv.page_bytes, 37'440u);  // 64 compressed rows
  v4.compress_ratio = 1;
  EXPECT_EQ(Declare("mla_windowed", v4)->path, kWindowOnly.name());
  EXPECT_EQ(Declare("mla_windowed", v4)->extra_kv, KvPageSpec());

  AttentionConfig delta = Bf16(32);
  delta.key_heads = 16, delta.latent = 128;
  ASSERT_OK_AND_ASSIGN(const AttentionDeclaration state, Declare("gated_delta_net", delta));
  EXPECT_EQ(state.kv.kind, KvKind::kState);
  EXPECT_EQ(state.kv.page_bytes, 2'097'152u + 3 * 64 * 128 * 2);
  EXPECT_EQ(Scratch(state), 8192u * 32 * (128 + 3 * 256 + 512 + 4));  // 370 MB
  EXPECT_THAT(state.persistent, Names("spec_mask"));
}

TEST(Declaration, EveryBackendDeclaresNamedRequestsWithReasons) {
  AttentionConfig config = Bf16(32);
  config.key_heads = 16, config.latent = 128, config.split_parts = 132;
  for (const std::string& backend : BackendNames()) {
    SCOPED_TRACE(backend);
    ASSERT_OK_AND_ASSIGN(const AttentionDeclaration d, Declare(backend, config));
    EXPECT_EQ(d.backend, backend);
    EXPECT_FALSE(d.path.empty());
    EXPECT_GT(Scratch(d), 0u);
    EXPECT_GT(d.kv.page_bytes, 0u);
    for (const auto* list : {&d.scratch, &d.persistent}) {
      EXPECT_THAT(*list, Each(Field(&DeclaredRequest::bytes, testing::Gt(0u))));
      EXPECT_THAT(*list, Each(Field(&DeclaredRequest::why, Not(IsEmpty()))));
    }
  }
  EXPECT_THAT(BackendNames(), ElementsAre("flashinfer_mla", "flashinfer_sparse_mla",
                                          "flashmla_sparse", "gated_delta_net", "mla_dense",
                                          "mla_sparse", "mla_windowed", "sparse_indexer"));
}

TEST(Declaration, BadConfigurationsAreRefusedByFieldBeforeAnythingIsSized) {
  const struct {
    std::int64_t AttentionConfig::*field;
    std::int64_t value;
    const char* says;
  } cases[] = {
      {&AttentionConfig::heads, 0, "heads is 0; must be in [1, 128]"},
      {&AttentionConfig::heads, -1, "heads is -1"},
      {&AttentionConfig::max_batched_tokens, 0, "max_batched_tokens is 0"},
      {&AttentionConfig::max_sequences, 0, "max_sequences is 0"},
      {&AttentionConfig::max_model_len, INT64_MAX, "max_model_len is 9223372036854775807"},
      {&AttentionConfig::decode_ranks, 0, "decode_ranks is 0"},
      {&AttentionConfig::page_tokens, 0, "page_tokens is 0"},
      {&AttentionConfig::split_parts, 133, "split_parts is 133; must be in [1, 132]"},
      {&AttentionConfig::prefill_factor, 0, "prefill_factor is 0"},
  };
  for (const std::string& backend : BackendNames()) {
    for (const auto& c : cases) {
      AttentionConfig config = Bf16(32);
      config.*c.field = c.value;
      const absl::StatusOr<AttentionDeclaration> d = Declare(backend, config);
      ASSERT_THAT(d, IsErrorKind(ErrorKind::kInvalidArgument)) << backend << " " << c.says;
      EXPECT_THAT(std::string(d.status().message()), HasSubstr(c.says));
      EXPECT_THAT(std::string(d.status().message()), HasSubstr(backend));
    }
  }
  EXPECT_THAT(Declare("flash", Config(16)), IsErrorKind(ErrorKind::kNotFound));
}

TEST(Declaration, CombinationsNotOfferedAreUnsupported) {
  AttentionConfig narrow = Config(16);
  narrow.latent = 256;
  EXPECT_THAT(Declare("mla_sparse", narrow), IsErrorKind(ErrorKind::kUnsupported));
  EXPECT_THAT(Declare("mla_dense", Config(16)), IsErrorKind(ErrorKind::kUnsupported));
  AttentionConfig ranks = Bf16(16);
  ranks.decode_ranks = 2;
  for (const char* backend : {"mla_dense", "mla_windowed", "gated_delta_net"}) {
    EXPECT_THAT(Declare(backend, ranks), IsErrorKind(ErrorKind::kUnsupported)) << backend;
  }
  AttentionConfig odd = Config(64);
  odd.page_tokens = 64, odd.compress_ratio = 128;
  EXPECT_THAT(Declare("mla_windowed", odd), IsErrorKind(ErrorKind::kInvalidArgument));
  AttentionConfig delta = Bf16(32);
  delta.key_heads = 5;
  EXPECT_THAT(Declare("gated_delta_net", delta), IsErrorKind(ErrorKind::kInvalidArgument));
}

AttentionDeclaration Supports(const std::string& backend, ProfilingSupport support) {
  return {.backend = backend, .profiling = support};
}

TEST(Declaration, ProfilingRunsOnlyIfNobodyObjectsAndSomebodyAsks) {
  const auto required = Supports("r", ProfilingSupport::kRequired);
  const auto neutral = Supports("n", ProfilingSupport::kNeutral);
  const AttentionDeclaration silent{.backend = "s"};  // fail closed
  EXPECT_TRUE(DecideProfiling({required}).runs);
  EXPECT_TRUE(DecideProfiling({neutral, required}).runs);
  EXPECT_EQ(DecideProfiling({neutral, required}).why, "r requires it");
  EXPECT_FALSE(DecideProfiling({}).runs);
  EXPECT_FALSE(DecideProfiling({neutral, neutral}).runs);
  EXPECT_FALSE(DecideProfiling({required, silent}).runs);
  EXPECT_EQ(DecideProfiling({required, silent, neutral}).why, "s: not supported");
}

TEST(Declaration, SupportOfTheBackends) {
  EXPECT_EQ(Declare("mla_dense", Bf16(16))->profiling, ProfilingSupport::kRequired);
  EXPECT_EQ(Declare("sparse_indexer", Bf16(16))->profiling, ProfilingSupport::kNeutral);
  EXPECT_EQ(Declare("mla_windowed", Bf16(16))->profiling, ProfilingSupport::kUnsupported);
  EXPECT_EQ(Declare("flashinfer_mla", Bf16(16))->profiling, ProfilingSupport::kRequired);
  AttentionConfig ranks = Bf16(16);
  ranks.decode_ranks = 2;
  ASSERT_OK_AND_ASSIGN(const AttentionDeclaration shared, Declare("flashinfer_mla", ranks));
  EXPECT_EQ(shared.profiling, ProfilingSupport::kUnsupported);
  EXPECT_EQ(Scratch(shared), 268'435'456u);
  EXPECT_EQ(*TotalBytes(shared.persistent), 4u * 64 * 32);
}

TEST(Declaration, PagesOfASequence) {
  const KvPageSpec full{.kind = KvKind::kFull, .page_tokens = 16};
  EXPECT_EQ(PagesOfSequence(full, {.tokens = 1024}), 64);
  EXPECT_EQ(PagesOfSequence(full, {.tokens = 1025}), 65);
  EXPECT_EQ(PagesOfSequence(full, {.tokens = 1024, .draft_tokens = 1}), 65);
  KvPageSpec shared = full;
  shared.context_ranks = 8;
  EXPECT_EQ(PagesOfSequence(shared, {.tokens = 1024}), 8);
  EXPECT_EQ(PagesOfSequence(shared, {.tokens = 1025}), 9);
  const KvPageSpec window{.kind = KvKind::kWindow, .page_tokens = 64, .window = 128};
  EXPECT_EQ(PagesOfSequence(window, {.tokens = 1 << 20, .max_batched_tokens = 8192}), 131);
  EXPECT_EQ(PagesOfSequence(window, {.tokens = 64, .max_batched_tokens = 8192}), 2);
  const KvPageSpec state{.kind = KvKind::kState};
  EXPECT_EQ(PagesOfSequence(state, {.tokens = 1 << 20}), 1);
  EXPECT_EQ(PagesOfSequence(state, {.tokens = 5, .draft_tokens = 3}), 4);
  EXPECT_EQ(PagesOfSequence(state, {.draft_tokens = 3, .aligned_states = true}), 5);
  EXPECT_EQ(PagesOfSequence({}, {.tokens = 5}), 0);
}

}  // namespace
}  // namespace holdfast
