// The engine's life cycle, generation over buckets, and what it refuses.
#include <algorithm>

#include "tests/runtime/engine_fixture.h"

namespace holdfast {
namespace {

TEST(EngineTest, ServesAfterCreateWithEveryBucketCapturedAndTheArenaLocked) {
  // Verifies: the life cycle ends in serving, locked, with one audited graph a bucket and no
  // foreign pointer.
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", SmallOptions()));
  EXPECT_EQ(test->state(), EngineState::kServing);
  EXPECT_TRUE(test->arena().locked());
  EXPECT_EQ(test->graphs().graphs().size(), 4u + 2u);  // decode 1, 2, 4, 8; prefill 16, 32
  for (const Graph* graph : test->graphs().graphs()) {
    const auto classes = graph->manifest().audit.count_by_class();
    EXPECT_GT(classes.at(PointerClass::kSpan), 0u) << graph->name();
    EXPECT_EQ(classes.at(PointerClass::kHostSpan), 2u) << graph->name();  // input and output copies
    EXPECT_EQ(classes.count(PointerClass::kForeign), 0u) << graph->name();
  }
  // Buckets overlay each other: the workspace holds the largest, not the sum.
  EXPECT_LT(test->graphs().scratch_bytes(), test->graphs().scratch_sum_bytes());
  EXPECT_EQ(test->kv_plan().pages, test->kv_plan().most_pages);
}

TEST(EngineTest, SameRequestsGiveSameTokensAndLogitBits) {
  // Verifies: generation is a function of the requests; a changed seed changes seeded requests
  // only.
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", SmallOptions()));
  std::vector<GenerateRequest> requests = MixedRequests(8);
  ASSERT_OK_AND_ASSIGN(const auto first, test->Generate(requests));
  ASSERT_OK_AND_ASSIGN(const auto second, test->Generate(requests));
  EXPECT_EQ(first, second);
  for (GenerateRequest& request : requests) request.seed = 7;
  ASSERT_OK_AND_ASSIGN(const auto reseeded, test->Generate(requests));
  EXPECT_EQ(first[0], reseeded[0]);
  bool changed = false;
  for (std::size_t i = 1; i < requests.size(); i += 2)
    changed = changed || !(first[i] == reseeded[i]);
  EXPECT_TRUE(changed);
}

TEST(EngineTest, CountsEveryReplayAndOnlyReplays) {
  // Verifies: profiling restores state, so that the graphs' own counter equals the replays.
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", SmallOptions()));
  ASSERT_OK_AND_ASSIGN(const std::uint64_t at_start, test->StepCount());
  EXPECT_EQ(at_start, 0u);
  ASSERT_OK(test->Generate(MixedRequests(5)));
  std::uint64_t replays = 0;
  for (const Graph* graph : test->graphs().graphs()) replays += graph->replays();
  ASSERT_OK_AND_ASSIGN(const std::uint64_t counted, test->StepCount());
  EXPECT_EQ(counted, replays);
  EXPECT_EQ(counted, test->graphs().counts().replays);
}

TEST(EngineTest, DeterministicModeGivesEqualBitsAloneAndInAnyBatch) {
  // Verifies: in the deterministic mode a request's logits do not depend on bucket, batch or
  // prefill chunks.
  EngineOptions options = SmallOptions();
  options.deterministic = true;
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", options));
  const std::vector<GenerateRequest> requests = MixedRequests(8);
  ASSERT_OK_AND_ASSIGN(const auto together, test->Generate(requests));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const auto alone, test->Generate({requests[i]}));
    EXPECT_EQ(alone[0], together[i]) << "request " << i;
  }
}

TEST(EngineTest, PadsAndStaleScratchDoNotReachRealRows) {
  // Verifies: three rows in a bucket of four give the same bits whatever scratch, outputs and the
  // free part of the cache hold.
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", SmallOptions()));
  const std::vector<GenerateRequest> requests = MixedRequests(3);
  ASSERT_OK_AND_ASSIGN(const auto clean, test->Generate(requests));
  for (const SpanInfo& span : test->arena().spans()) {
    if (span.spec.role != Role::kScratch && span.spec.role != Role::kCache) continue;
    ASSERT_OK(test.device->Fill(test->lane().stream(), span.range.base, 0xFF, span.range.bytes));
  }
  ASSERT_OK_AND_ASSIGN(const auto poisoned, test->Generate(requests));
  EXPECT_EQ(clean, poisoned);
}

TEST(EngineTest, LongPromptsTakeSeveralPrefillPasses) {
  // Verifies: a prompt longer than the largest prefill bucket gives what one pass gives (host: bit
  // for bit).
  EngineOptions wide = SmallOptions(), narrow = SmallOptions();
  wide.max_prefill_tokens = 64;
  narrow.max_prefill_tokens = 16;
  wide.deterministic = narrow.deterministic = true;
  GenerateRequest request{
      .prompt = std::vector<std::int32_t>(50, 3), .max_tokens = 4, .forced = {}};
  for (std::size_t i = 0; i < request.prompt.size(); ++i) {
    request.prompt[i] = static_cast<std::int32_t>(i * 5 % 97);
  }
  ASSERT_OK_AND_ASSIGN(TestEngine one, MakeEngine("query_latent", wide));
  ASSERT_OK_AND_ASSIGN(TestEngine many, MakeEngine("query_latent", narrow));
  ASSERT_OK_AND_ASSIGN(const auto whole, one->Generate({request}));
  ASSERT_OK_AND_ASSIGN(const auto pieces, many->Generate({request}));
  EXPECT_EQ(whole, pieces);
}

TEST(EngineTest, MoreRequestsThanTheBatchRunInWaves) {
  // Verifies: 19 requests over a batch of 8 all finish at their own lengths.
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", SmallOptions()));
  const std::vector<GenerateRequest> requests = MixedRequests(19);
  ASSERT_OK_AND_ASSIGN(const auto done, test->Generate(requests));
  ASSERT_EQ(done.size(), requests.size());
  for (std::size_t i = 0; i < done.size(); ++i) {
    EXPECT_EQ(done[i].tokens.size(), static_cast<std::size_t>(requests[i].max_tokens));
  }
}

TEST(EngineTest, RefusesBadRequestsBeforeAnyWork) {
  // Verifies: each bad request is named, and no graph is launched.
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", SmallOptions()));
  const std::uint64_t launches = test.device->calls().succeeded(Call::kLaunchGraph);
  GenerateRequest good{.prompt = {1, 2}, .max_tokens = 2, .forced = {}};
  GenerateRequest empty = good, alien = good, negative = good, longer = good, nothing = good;
  empty.prompt.clear();
  alien.prompt[1] = 97;
  negative.prompt[0] = -1;
  longer.max_tokens = 95;  // 2 + 95 > 96
  nothing.max_tokens = 0;
  for (const GenerateRequest& bad : {empty, alien, negative, longer, nothing}) {
    const auto result = test->Generate({good, bad});
    EXPECT_THAT(result, IsErrorKind(ErrorKind::kInvalidArgument));
    EXPECT_EQ(GetErrorInfo(result.status())->object, "request 1");
  }
  EXPECT_EQ(test.device->calls().succeeded(Call::kLaunchGraph), launches);
  EXPECT_THAT(test->Generate({good}), IsOk());
}

TEST(EngineTest, ASequenceOfExactlyTheMaximumLengthFits) {
  // Verifies: prompt + output == max_sequence runs (field case 28's edge).
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", SmallOptions()));
  const GenerateRequest request{
      .prompt = std::vector<std::int32_t>(90, 5), .max_tokens = 6, .forced = {}};
  EXPECT_THAT(test->Generate({request}), IsOk());
}

TEST(EngineTest, WarmUpOfABucketAboveTheMaximumLengthStaysInside) {
  // Verifies: field case 56: a prefill bucket longer than the longest sequence is warmed up within
  // its limits.
  EngineOptions options = SmallOptions();
  options.max_sequence = 48;
  options.max_prefill_tokens = 128;
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", options));
  EXPECT_THAT(test->Generate(MixedRequests(8)), IsOk());
}

TEST(EngineTest, BucketsFollowTheLimits) {
  // Verifies: field case 57: the largest decode bucket is the maximum batch itself, and user lists
  // beyond it are refused by entry.
  EngineOptions options = SmallOptions();
  options.max_batch = 6;
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", options));
  EXPECT_NE(test->graphs().Find({Phase::kDecode, 6, 1, ""}), nullptr);
  EXPECT_EQ(test->graphs().Find({Phase::kDecode, 8, 1, ""}), nullptr);
  EXPECT_THAT(test->Generate(MixedRequests(6)), IsOk());
  options.decode_buckets = {1, 113};
  EXPECT_THAT(MakeEngine("query_latent", options), IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST(EngineTest, RefusesBadOptions) {
  // Verifies: each option is checked before memory is touched and named.
  const auto kind_of = [](auto change) {
    EngineOptions options = SmallOptions();
    change(options);
    return MakeEngine("query_latent", options).status();
  };
  EXPECT_THAT(kind_of([](EngineOptions& o) { o.max_batch = 0; }),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(kind_of([](EngineOptions& o) { o.max_prefill_tokens = -1; }),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(kind_of([](EngineOptions& o) { o.max_sequence = 1; }),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(kind_of([](EngineOptions& o) { o.utilization = 1.5; }),
              IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST(EngineTest, CapacityTooSmallNamesNeedAndHave) {
  // Verifies: a device too small for one longest sequence is refused at start with both numbers,
  // and nothing stays allocated.
  EngineOptions options = SmallOptions();
  options.max_sequence = 512;  // 9 pages of 576 KiB, of which the null page's granule holds 3
  options.max_batch = 1;
  options.utilization = 0.1;
  const std::unique_ptr<Device> device = TestHostDevice({.host_capacity_bytes = 64 * kMiB});
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Model> model, MlaModel::Open("models/demo", DType::kF32));
  const absl::Status refused = Engine::Create(*device, std::move(model), options).status();
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfMemory));
  const auto info = GetErrorInfo(refused);
  ASSERT_TRUE(info.has_value());
  EXPECT_GT(info->need, info->have);
  EXPECT_TRUE(device->calls().Balanced());
}

TEST(EngineTest, AStalePointerFailsTheCaptureByName) {
  // Verifies: negative control: a graph that would write outside the arena is not captured, and the
  // error says which graph.
  EngineOptions options = SmallOptions();
  options.plant_stale_pointer = true;
  const absl::Status status = MakeEngine("query_latent", options).status();
  EXPECT_THAT(status, IsErrorKind(ErrorKind::kForeignPointer));
  EXPECT_NE(std::string(status.message()).find("prefill/32"), std::string::npos) << status;
}

}  // namespace
}  // namespace holdfast
