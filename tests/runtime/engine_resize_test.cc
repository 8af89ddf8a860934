// Verifies that the cache grows and shrinks in place: same addresses, same graphs, same outputs;
// and what is refused, with the cache as it was.
#include <algorithm>
#include <set>

#include "device/host/host_device.h"
#include "runtime/kv_pages.h"
#include "tests/runtime/engine_fixture.h"

namespace holdfast {
namespace {

constexpr std::chrono::milliseconds kDeadline{20'000};

// A page of the fixture is small: chunks of one granule, several pages each.
EngineOptions ResizableOptions(std::int32_t blocks) {
  EngineOptions options = SmallOptions();
  options.chunk_bytes = 2 * kMiB;
  options.set_kv_budget(CacheBlocks{blocks});
  return options;
}

std::vector<AddressRange> Addresses(Engine& engine) { return engine.arena().span_ranges(); }

TEST(EngineResize, GrowsAndShrinksWithoutMovingOrRecapturing) {
  EngineOptions options = ResizableOptions(17);
  options.deterministic = true;  // fewer pages make other batches
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", options));
  const std::vector<GenerateRequest> requests = MixedRequests(8);
  ASSERT_OK_AND_ASSIGN(const auto golden, test->Generate(requests));
  const auto addresses = Addresses(*test);
  const std::uint64_t captures = test->graphs().counts().captures;
  const std::int32_t needed = test->kv_plan().needed_pages;
  for (const std::int32_t pages : {needed, 17, needed + 1, 10, 17}) {
    const std::int32_t before = test->kv_plan().pages;
    ASSERT_OK_AND_ASSIGN(const CacheResize done, test->ResizeCache(pages, kDeadline));
    EXPECT_EQ(done.pages_before, before);
    EXPECT_EQ(done.pages, pages);
    EXPECT_EQ(test->kv_plan().pages, pages);
    EXPECT_GE(done.committed_bytes, static_cast<std::uint64_t>(pages) * test->kv_plan().page_bytes);
    EXPECT_EQ(Addresses(*test), addresses);
    ASSERT_OK_AND_ASSIGN(const auto outputs, test->Generate(requests));
    EXPECT_EQ(outputs, golden) << pages << " pages";
  }
  EXPECT_EQ(test->graphs().counts().captures, captures);
}

TEST(EngineResize, PagesComeFromTheDeviceAndGoBackToIt) {
  // The demo's page is more than a quarter of a chunk: whole chunks come and go.
  EngineOptions options = ResizableOptions(65);
  options.max_sequence = 256;
  options.chunk_bytes = 2 * kMiB;
  TestEngine test{.device = TestDevice(), .engine = nullptr};
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Model> model,
                       MlaModel::Open("models/demo", TestType(*test.device)));
  ASSERT_OK_AND_ASSIGN(test.engine, Engine::Create(*test.device, std::move(model), options));
  const std::uint64_t full = test.device->Memory()->own_bytes;
  ASSERT_OK_AND_ASSIGN(const CacheResize less, test->ResizeCache(20, kDeadline));
  EXPECT_GT(less.given_back_bytes, 0u);
  EXPECT_EQ(full - test.device->Memory()->own_bytes, less.given_back_bytes);
  ASSERT_OK_AND_ASSIGN(const CacheResize more, test->ResizeCache(65, kDeadline));
  EXPECT_EQ(more.taken_bytes, less.given_back_bytes);
  EXPECT_EQ(test.device->Memory()->own_bytes, full);
}

TEST(EngineResize, WorksBeforeAndAfterSleepAndIsRefusedAsleep) {
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", ResizableOptions(17)));
  const std::vector<GenerateRequest> requests = MixedRequests(5);
  ASSERT_OK_AND_ASSIGN(const auto golden, test->Generate(requests));
  const auto addresses = Addresses(*test);
  for (const std::int32_t pages : {6, 17}) {
    ASSERT_OK(test->ResizeCache(pages, kDeadline));
    ASSERT_OK(test->Sleep(test->arena().tags(), kDeadline));
    EXPECT_THAT(test->ResizeCache(pages == 6 ? 17 : 6, kDeadline), IsErrorKind(ErrorKind::kAsleep));
    EXPECT_EQ(test->kv_plan().pages, pages);
    ASSERT_OK(test->Wake(test->arena().tags()));
    ASSERT_OK_AND_ASSIGN(const auto outputs, test->Generate(requests));
    EXPECT_EQ(outputs, golden);
    EXPECT_EQ(Addresses(*test), addresses);
  }
}

TEST(EngineResize, RefusesWhatCannotBeAndKeepsTheCache) {
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", ResizableOptions(5)));
  const KvPlan plan = test->kv_plan();
  const auto refused = [&](std::int32_t pages) {
    return test->ResizeCache(pages, kDeadline).status();
  };
  for (const std::int32_t pages : {plan.needed_pages - 1, 0, -4}) {
    EXPECT_THAT(refused(pages), IsErrorKind(ErrorKind::kInvalidArgument));
    EXPECT_EQ(GetErrorInfo(refused(pages))->need, static_cast<std::uint64_t>(plan.needed_pages));
  }
  EXPECT_THAT(refused(plan.most_pages + 1), IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_EQ(GetErrorInfo(refused(plan.most_pages + 1))->have,
            static_cast<std::uint64_t>(plan.most_pages));
  EXPECT_EQ(test->kv_plan().pages, plan.pages);
  EXPECT_THAT(test->Generate(MixedRequests(4)), IsOk());
}

TEST(EngineResize, GrowsOnlyIntoWhatTheBudgetLeaves) {
  const auto device = TestHostDevice({.host_capacity_bytes = 128 * kMiB});
  EngineOptions options = SmallOptions();
  options.chunk_bytes = 2 * kMiB;
  options.max_sequence = 512;
  options.max_batch = 16;
  options.decode_buckets = {1, 16};
  options.utilization = 0.5;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Model> model, MlaModel::Open("models/demo", DType::kF32));
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Create(*device, std::move(model), options));
  const std::int32_t planned = engine->kv_plan().pages;
  ASSERT_LT(planned, engine->kv_plan().most_pages);
  const absl::Status beyond = engine->ResizeCache(planned + 2, kDeadline).status();
  EXPECT_THAT(beyond, IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_EQ(GetErrorInfo(beyond)->need, static_cast<std::uint64_t>(planned) + 2);
  ASSERT_OK(engine->ResizeCache(planned - 4, kDeadline));
  // A neighbour takes what was given back, and nearly all the rest.
  ASSERT_OK(TakeForNeighbour(*device, device->Memory()->free_bytes));
  EXPECT_THAT(engine->ResizeCache(planned, kDeadline), IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_EQ(engine->kv_plan().pages, planned - 4);
  ASSERT_OK(GiveFromNeighbour(*device, 64 * kMiB));
  ASSERT_OK_AND_ASSIGN(const CacheResize again, engine->ResizeCache(planned, kDeadline));
  EXPECT_EQ(again.pages, planned);
  EXPECT_LE(device->Memory()->process_bytes, engine->kv_plan().budget_bytes);
}

TEST(EngineResize, AFailureAtAnyDeviceCallLeavesACacheThatServes) {
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", ResizableOptions(17)));
  const std::vector<GenerateRequest> requests = MixedRequests(4);
  ASSERT_OK_AND_ASSIGN(const auto golden, test->Generate(requests));
  const auto addresses = Addresses(*test);
  for (const std::int32_t pages : {6, 17}) {
    bool fired = true;
    for (std::uint64_t k = 1; fired; ++k) {
      ASSERT_LT(k, 500u);
      test.device->calls().FailAt(k);
      const absl::Status status = test->ResizeCache(pages, kDeadline).status();
      fired = test.device->calls().Disarm();
      EXPECT_TRUE(fired || status.ok()) << status;
      ASSERT_OK_AND_ASSIGN(const auto outputs, test->Generate(requests));
      ASSERT_EQ(outputs, golden) << "call " << k;
      ASSERT_EQ(Addresses(*test), addresses);
      if (!fired) continue;
      ASSERT_OK(test->ResizeCache(pages == 6 ? 17 : 6, kDeadline));
    }
  }
}

TEST(KvPagesResize, ShrinkingNamesThePagesInUse) {
  KvPages pages(12);
  ASSERT_OK_AND_ASSIGN(const std::vector<std::int32_t> first, pages.Take(5));   // 1 to 5
  ASSERT_OK_AND_ASSIGN(const std::vector<std::int32_t> second, pages.Take(3));  // 6 to 8
  pages.Return(first);
  const absl::Status refused = pages.Shrink(7);
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kHeld));
  EXPECT_EQ(GetErrorInfo(refused)->need, 9u);
  EXPECT_EQ(GetErrorInfo(refused)->have, 7u);
  EXPECT_NE(std::string(refused.message()).find("7, 8"), std::string::npos) << refused;
  EXPECT_EQ(pages.total(), 12);
  EXPECT_EQ(pages.free(), 8);
  EXPECT_OK(pages.Shrink(9));
  EXPECT_EQ(pages.total(), 9);
  EXPECT_EQ(pages.free(), 5);
  pages.Return(second);
  EXPECT_OK(pages.Shrink(1));
  EXPECT_EQ(pages.free(), 0);
  EXPECT_THAT(pages.Take(1), IsErrorKind(ErrorKind::kOutOfMemory));
  pages.Grow(4);
  pages.Grow(3);  // fewer than there are: nothing
  ASSERT_OK_AND_ASSIGN(const std::vector<std::int32_t> all, pages.Take(3));
  EXPECT_EQ(all, (std::vector<std::int32_t>{1, 2, 3}));
}

TEST(KvPagesResize, NoPageIsHandedOutTwice) {
  KvPages pages(4);
  ASSERT_OK_AND_ASSIGN(const std::vector<std::int32_t> held, pages.Take(2));
  pages.Grow(9);
  ASSERT_OK_AND_ASSIGN(std::vector<std::int32_t> rest, pages.Take(pages.free()));
  std::set<std::int32_t> all(rest.begin(), rest.end());
  all.insert(held.begin(), held.end());
  EXPECT_EQ(all.size(), 8u);
  EXPECT_EQ(*all.begin(), 1);
  EXPECT_EQ(*all.rbegin(), 8);
}

}  // namespace
}  // namespace holdfast
