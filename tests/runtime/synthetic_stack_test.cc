// Verifies: a stack of any declared backends runs in the whole engine, its caches and scratch are
// written and read back byte for byte, and whatever is wrong with a byte shows in the logits and by
// name.
#include "tests/runtime/synthetic_rig.h"

namespace holdfast {
namespace {

constexpr std::uint8_t kCanary = 0xCD;

// One of every kind: scratch of several requests, two caches a layer, a window, a state, counters.
constexpr char kMixture[] =
    "mla_sparse:heads=64,prefill_factor=2+mla_windowed:compress_ratio=4,window=24,page_tokens=16"
    "+gated_delta_net:heads=8,key_heads=4+sparse_indexer:prefill_factor=1,topk=64"
    "+mla_dense:latent=64,rope=16,split_parts=4";

std::vector<SyntheticFinding> NoFindings() { return {}; }

class EveryBackend : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryBackend, RunsInTheEngineAndFindsNothingWrong) {
  // Verifies: every declaration can be run: graphs are captured and audited, each byte of scratch,
  // cache and persistent buffers is as its owner put it, and outputs depend on the requests alone.
  EngineOptions options = SmallOptions();
  options.max_batch = 4;
  options.max_prefill_tokens = 16;
  options.max_sequence = 80;
  ASSERT_OK_AND_ASSIGN(SyntheticEngine test, MakeSyntheticEngine(GetParam(), options));
  const std::vector<GenerateRequest> requests = MixedRequests(4, 4);
  ASSERT_OK_AND_ASSIGN(const auto first, test->Generate(requests));
  ASSERT_OK_AND_ASSIGN(const auto second, test->Generate(requests));
  EXPECT_EQ(first, second);
  ASSERT_OK_AND_ASSIGN(const auto findings, test.Findings());
  EXPECT_TRUE(findings.empty()) << findings.front().buffer << " at " << findings.front().first;
}

INSTANTIATE_TEST_SUITE_P(
    Synthetic, EveryBackend,
    ::testing::Values("mla_sparse:heads=16,layers=2", "mla_sparse:heads=64,layers=2",
                      "mla_sparse:quantized=0,latent=64,rope=16,split_parts=8",
                      "mla_sparse:prefill_ranks=2,decode_ranks=2", "flashmla_sparse:heads=16",
                      "mla_dense:latent=64,rope=0", "mla_windowed:window=20",
                      "mla_windowed:window=20,quantized=1,compress_ratio=4,topk=8",
                      "gated_delta_net:layers=3", "sparse_indexer:prefill_factor=1", kMixture));

TEST(SyntheticStackTest, RowsDependOnTheirSequenceAlone) {
  // Verifies: logits are a function of a sequence's tokens: alone, in any batch, bucket and cut of
  // the prompt, bit for bit, though requests share scratch and pages with others.
  ASSERT_OK_AND_ASSIGN(SyntheticEngine test, MakeSyntheticEngine(kMixture));
  const std::vector<GenerateRequest> requests = MixedRequests(8);
  ASSERT_OK_AND_ASSIGN(const auto together, test->Generate(requests));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const auto alone, test->Generate({requests[i]}));
    EXPECT_EQ(alone[0], together[i]) << "request " << i;
  }
  GenerateRequest other = requests[5];
  other.prompt[0] ^= 1;  // far back in the history
  ASSERT_OK_AND_ASSIGN(const auto changed, test->Generate({other}));
  EXPECT_NE(changed[0].logit_hashes, together[5].logit_hashes);
}

TEST(SyntheticStackTest, WindowsGoRoundInTheirTableAndStatesCarryOn) {
  // Verifies: a sequence longer than window and pass together overwrites the oldest page of its
  // table and nothing else; a state is carried over passes of any cut.
  EngineOptions options = SmallOptions();
  options.max_prefill_tokens = 16;
  ASSERT_OK_AND_ASSIGN(
      SyntheticEngine test,
      MakeSyntheticEngine("mla_windowed:window=12,page_tokens=8+gated_delta_net", options));
  const KvTables& tables = test.stack->caches().tables;
  ASSERT_EQ(tables.parts().size(), 2u);
  EXPECT_EQ(tables.parts()[0].entries, 5);  // ceil((12 - 1 + 16) / 8) + 1, not 96 / 8
  EXPECT_EQ(tables.parts()[1].entries, 1);
  GenerateRequest request{.prompt = {}, .max_tokens = 40, .forced = {}};
  for (std::int32_t i = 0; i < 55; ++i) request.prompt.push_back(i * 7 % 101);
  ASSERT_OK_AND_ASSIGN(const auto long_one, test->Generate({request}));
  EXPECT_EQ(long_one[0].tokens.size(), 40u);
  ASSERT_OK_AND_ASSIGN(const auto findings, test.Findings());
  EXPECT_EQ(findings, NoFindings());
}

TEST(SyntheticStackTest, SeedsGiveOtherWeightsAndOtherLogits) {
  // Verifies: the weights are the seed's: the same seed gives the same logits in another engine.
  const std::vector<GenerateRequest> requests = MixedRequests(2);
  std::vector<std::vector<Completion>> outputs;
  for (const std::uint64_t seed : {7u, 7u, 8u}) {
    ASSERT_OK_AND_ASSIGN(SyntheticEngine test,
                         MakeSyntheticEngine("gated_delta_net", SmallOptions(), TestDevice(),
                                             {.seed = seed}));
    ASSERT_OK_AND_ASSIGN(outputs.emplace_back(), test->Generate(requests));
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  EXPECT_NE(outputs[0][0].logit_hashes, outputs[2][0].logit_hashes);
}

TEST(SyntheticStackTest, EveryRequestedByteIsWrittenAndNoneBeside) {
  // Verifies: canaries around requests stay, and no run of bytes inside a request keeps its canary.
  ASSERT_OK_AND_ASSIGN(SyntheticEngine test,
                       MakeSyntheticEngine("mla_dense:latent=40,rope=8,split_parts=3,heads=3"));
  ASSERT_OK_AND_ASSIGN(EagerPass pass, EagerPass::Make(test, 3));
  const AddressRange all = test->arena().range(test->workspace());
  ASSERT_OK(test.device().Fill(test->lane().stream(), all.base, kCanary, all.bytes));
  ASSERT_OK(pass.Run(0));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::uint8_t> bytes, ReadBytes(*test.test, all));
  std::vector<bool> requested(bytes.size(), false);
  for (std::size_t i = 0; i < pass.plan().requests.size(); ++i) {
    const std::uint64_t first = pass.plan().offsets[i], size = pass.plan().requests[i].bytes;
    std::uint64_t run = 0, longest = 0;
    for (std::uint64_t b = first; b < first + size; ++b) {
      requested[b] = true;
      run = bytes[b] == kCanary ? run + 1 : 0;
      longest = std::max(longest, run);
    }
    EXPECT_LT(longest, 8u) << pass.plan().requests[i].name;
  }
  std::uint64_t around = 0;
  for (std::size_t b = 0; b < bytes.size(); ++b) {
    if (requested[b]) continue;
    ++around;
    ASSERT_EQ(bytes[b], kCanary) << "offset " << b << " of the workspace belongs to nobody";
  }
  EXPECT_GT(around, 0u);  // requests that do not fill their 256 bytes leave some
}

TEST(SyntheticStackTest, OverlappingRequestsChangeTheLogitsAndAreNamed) {
  // Verifies: negative control: of two requests in the same memory the one written first is found
  // wrong, by name, and the logits differ.
  ASSERT_OK_AND_ASSIGN(SyntheticEngine test,
                       MakeSyntheticEngine("mla_dense:latent=64,rope=16+mla_dense:latent=64,"
                                           "rope=16,split_parts=4"));
  ASSERT_GE(test.stack->layers()[1].declaration().scratch.size(), 2u);
  ASSERT_OK_AND_ASSIGN(EagerPass pass, EagerPass::Make(test, 2));
  ASSERT_OK_AND_ASSIGN(const auto sound, pass.Run(0));
  ASSERT_OK_AND_ASSIGN(const auto before, test.Findings());
  EXPECT_EQ(before, NoFindings());
  test.stack->Plant({.overlap = SyntheticPlants::Overlap{.layer = 1, .first = 0, .second = 1}});
  ASSERT_OK_AND_ASSIGN(const auto clobbered, pass.Run(0));
  EXPECT_NE(sound, clobbered);
  ASSERT_OK_AND_ASSIGN(const auto findings, test.Findings());
  ASSERT_EQ(findings.size(), 1u);
  const std::string name = test.stack->layers()[1].declaration().scratch[0].name;
  EXPECT_EQ(findings[0].buffer, "layers.1.mla_dense." + name);
  EXPECT_EQ(findings[0].first, 0u);
  test.stack->Plant({});
  ASSERT_OK_AND_ASSIGN(const auto healed, pass.Run(0));
  EXPECT_EQ(sound, healed);
}

TEST(SyntheticStackTest, AFlippedByteOfAnyKeptBufferChangesTheLogitsAndIsNamed) {
  // Verifies: negative control: one byte of a cache, a state, a persistent buffer.
  ASSERT_OK_AND_ASSIGN(SyntheticEngine test,
                       MakeSyntheticEngine("mla_sparse:heads=16+gated_delta_net"));
  ASSERT_OK_AND_ASSIGN(EagerPass pass, EagerPass::Make(test, 2));
  ASSERT_OK(pass.Run(0));
  ASSERT_OK_AND_ASSIGN(const auto sound, pass.Run(1));
  const auto& caches = test.stack->caches().caches;
  const KvTables& tables = test.stack->caches().tables;
  const DeviceAddress pool = test->arena().range(*test->arena().Find("kv")).base;
  const std::string counters = test.stack->layers()[1].declaration().persistent[0].name;
  const struct {
    std::string name;
    DeviceAddress at;
  } targets[] = {
      // Sequence 1's blocks begin behind sequence 0's.
      {"layers.0.mla_sparse.kv",
       pool + (1 + tables.stride() + tables.parts()[0].first) *
                  static_cast<std::uint64_t>(caches[0].layout.block_bytes) +
           static_cast<std::uint64_t>(caches[0].layout.layer_offset) + 655},
      {"layers.1.gated_delta_net.kv",
       pool + (1 + tables.stride() + tables.parts()[1].first) *
                  static_cast<std::uint64_t>(caches[1].layout.block_bytes) +
           static_cast<std::uint64_t>(caches[1].layout.layer_offset) + 1000},
      {"layers.1.gated_delta_net." + counters,
       test->arena().range(*test->arena().Find("layers.1.gated_delta_net." + counters)).base + 5},
  };
  std::size_t known = 0;
  for (const auto& target : targets) {
    ASSERT_OK(pass.Run(0));
    ASSERT_OK(FlipByte(*test.test, target.at));
    ASSERT_OK_AND_ASSIGN(const auto wrong, pass.Run(1));
    EXPECT_NE(sound, wrong) << target.name;
    ASSERT_OK_AND_ASSIGN(const auto findings, test.Findings());
    ASSERT_EQ(findings.size(), ++known) << target.name;
    EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [&](const SyntheticFinding& f) {
      return f.buffer == target.name;
    })) << target.name;
    // The pass wrote its own bytes anew: the next ones are sound again.
    ASSERT_OK(pass.Run(0));
    ASSERT_OK_AND_ASSIGN(const auto healed, pass.Run(1));
    EXPECT_EQ(sound, healed) << target.name;
  }
}

TEST(SyntheticStackTest, ProfilingIsDecidedByTheMixtureAndSaysWhoKeptItOff) {
  // Verifies: required + neutral runs; one unsupported backend keeps it off by name; neutral alone
  // does not run.
  const auto decide = [](const std::string& spec) { return (*MakeStack(spec))->profiling(); };
  EXPECT_TRUE(decide("mla_sparse+gated_delta_net").runs);
  EXPECT_NE(decide("mla_sparse+gated_delta_net").why.find("mla_sparse"), std::string::npos);
  EXPECT_FALSE(decide("mla_sparse+mla_windowed+gated_delta_net").runs);
  EXPECT_NE(decide("mla_sparse+mla_windowed").why.find("mla_windowed"), std::string::npos);
  EXPECT_FALSE(decide("gated_delta_net+sparse_indexer").runs);
}

TEST(SyntheticStackTest, RefusesPassesBeyondWhatItDeclares) {
  // Verifies: an engine larger than the declared limits is refused with both numbers.
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<SyntheticStack> stack, MakeStack("mla_sparse"));
  EngineOptions options = SmallOptions();
  options.max_prefill_tokens = 64;  // 32 are declared
  const std::unique_ptr<Device> device = TestDevice();
  const auto engine = Engine::Create(*device, std::move(stack), options);
  ASSERT_THAT(engine, IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(GetErrorInfo(engine.status())->need, 64u);
  EXPECT_EQ(GetErrorInfo(engine.status())->have, 32u);
  EXPECT_TRUE(device->calls().Balanced());
}

}  // namespace
}  // namespace holdfast
