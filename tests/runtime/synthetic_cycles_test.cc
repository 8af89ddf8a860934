// Verifies: sleep and wake under an engine of synthetic layers: parity, logits, and what falls.
#include "tests/runtime/synthetic_rig.h"

namespace holdfast {
namespace {

constexpr std::chrono::milliseconds kDeadline{20'000};
constexpr char kSpec[] = "mla_sparse:heads=64,layers=2+mla_windowed:window=16+gated_delta_net";

std::uint64_t Committed(Engine& engine, const std::vector<std::string>& tags) {
  std::uint64_t bytes = 0;
  for (const TagBytes& tag : engine.arena().bytes_by_tag()) {
    if (std::find(tags.begin(), tags.end(), tag.tag) != tags.end()) bytes += tag.committed_bytes;
  }
  return bytes;
}

TEST(SyntheticCyclesTest, ThreeCyclesKeepBytesAddressesAndLogits) {
  // Verifies: full, selective, full: own bytes fall by the slept tags' pages (weights, KV and the
  // whole workspace among them), come back to the byte, and greedy and seeded logits are the same;
  // nothing is refused as locked.
  ASSERT_OK_AND_ASSIGN(SyntheticEngine test, MakeSyntheticEngine(kSpec));
  const std::vector<GenerateRequest> requests = MixedRequests(8);  // every other one is seeded
  ASSERT_OK_AND_ASSIGN(const auto golden, test->Generate(requests));
  const std::vector<std::string> all = test->arena().tags();
  for (const auto& tags : {all, {kCacheTag, kWorkspaceTag}, all}) {
    ASSERT_OK_AND_ASSIGN(const MemoryUse before, test.device().Memory());
    ASSERT_OK_AND_ASSIGN(const TransitionReport slept, test->Sleep(tags, kDeadline));
    ASSERT_OK_AND_ASSIGN(const MemoryUse asleep, test.device().Memory());
    EXPECT_EQ(before.own_bytes - asleep.own_bytes, Committed(*test.test, tags));
    EXPECT_EQ(slept.freed_bytes, before.own_bytes - asleep.own_bytes);
    EXPECT_THAT(test->Generate(requests), IsErrorKind(ErrorKind::kAsleep));
    if (tags == all) {
      EXPECT_THAT(test.Findings(), IsErrorKind(ErrorKind::kAsleep));
    }
    ASSERT_OK(test->Wake(tags));
    ASSERT_OK_AND_ASSIGN(const MemoryUse after, test.device().Memory());
    EXPECT_EQ(after.own_bytes, before.own_bytes);
    ASSERT_OK_AND_ASSIGN(const auto changed, test->graphs().Recapture(test->workspace()));
    EXPECT_TRUE(changed.empty()) << changed.front();
    ASSERT_OK_AND_ASSIGN(const auto again, test->Generate(requests));
    EXPECT_EQ(golden, again);
  }
  ASSERT_OK_AND_ASSIGN(const auto findings, test.Findings());
  EXPECT_TRUE(findings.empty());
}

TEST(SyntheticCyclesTest, PersistentBuffersAreKeptAndADroppedOneIsFound) {
  // Verifies: what backends keep comes back as it was. Negative control: with its bytes gone the
  // step says which buffer, and the logits differ.
  ASSERT_OK_AND_ASSIGN(SyntheticEngine test, MakeSyntheticEngine(kSpec));
  const std::vector<GenerateRequest> requests = MixedRequests(2);
  ASSERT_OK_AND_ASSIGN(const auto golden, test->Generate(requests));
  std::vector<SyntheticFinding> findings;
  ASSERT_OK(test->Sleep({kPersistentTag}, kDeadline));
  ASSERT_OK(test->Wake({kPersistentTag}));
  {
    ASSERT_OK_AND_ASSIGN(const auto kept, test->Generate(requests));
    EXPECT_EQ(golden, kept);
  }
  const std::string name = "layers.3.gated_delta_net." +
                           test.stack->layers()[3].declaration().persistent[0].name;
  const AddressRange range = test->arena().range(*test->arena().Find(name));
  ASSERT_OK(test.device().Fill(test->lane().stream(), range.base, 0, range.bytes));
  ASSERT_OK_AND_ASSIGN(const auto lost, test->Generate(requests));
  EXPECT_NE(golden[0].logit_hashes, lost[0].logit_hashes);
  ASSERT_OK_AND_ASSIGN(findings, test.Findings());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].buffer, name);
}

TEST(SyntheticCyclesTest, WeightsLoadedThroughThePoolAreThoseOfAPlainLoad) {
  // Verifies: the pool's copies are the weights: after the first sleep, which copies none of them,
  // every weight is verified by the step.
  EngineOptions options = SmallOptions();
  options.load_through_pool = true;
  ASSERT_OK_AND_ASSIGN(SyntheticEngine plain, MakeSyntheticEngine("gated_delta_net:layers=2"));
  ASSERT_OK_AND_ASSIGN(SyntheticEngine test,
                       MakeSyntheticEngine("gated_delta_net:layers=2", options));
  const std::vector<GenerateRequest> requests = MixedRequests(3);
  ASSERT_OK_AND_ASSIGN(const auto golden, plain->Generate(requests));
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept,
                       test->Sleep(test->arena().tags(), kDeadline));
  for (const TagTransition& row : slept.tags) {
    if (row.tag == "weights") {
      EXPECT_EQ(row.kept_bytes, 0u);
    }
  }
  ASSERT_OK(test->Wake(test->arena().tags()));
  ASSERT_OK_AND_ASSIGN(const auto again, test->Generate(requests));
  EXPECT_EQ(golden, again);
}

}  // namespace
}  // namespace holdfast
