// Verifies that callers who get in each other's way (repeats, races, neighbours on the device,
// work on half of what is awake) get a plain answer, and that nothing is lost or done twice.
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

// Another owner of memory of the same device.
struct Hog {
  Device& device;
  std::vector<ChunkHandle> chunks;
  // In pieces of a granule: whatever is free can be had.
  absl::Status Take(std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += device.info().granularity) {
      HOLDFAST_ASSIGN_OR_RETURN(const ChunkHandle chunk,
                                device.CreateChunk(device.info().granularity));
      chunks.push_back(chunk);
    }
    return absl::OkStatus();
  }
  void Release() {
    for (const ChunkHandle chunk : chunks) EXPECT_OK(device.ReleaseChunk(chunk));
    chunks.clear();
  }
};

// One arena of `spans` kept spans of a granule each, in chunks of one.
struct ManySpans {
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Residency> residency;
  std::vector<SpanId> spans;

  ManySpans(Device& device, Stream& stream, int count, const std::string& name) {
    const std::uint64_t g = device.info().granularity;
    const auto extent = static_cast<std::uint64_t>(count) * g;
    auto made = Arena::Create(device, {.name = name, .groups = {{"t", Role::kMutable, extent, g}}});
    EXPECT_OK(made);
    if (!made.ok()) return;
    arena = *std::move(made);
    for (int i = 0; i < count; ++i) {
      const auto span = arena->Reserve({.name = absl::StrCat("s", i), .tag = "t", .bytes = g});
      EXPECT_OK(span);
      if (span.ok()) spans.push_back(*span);
    }
    EXPECT_OK(arena->CommitTag("t"));
    for (std::size_t i = 0; i < spans.size(); ++i) {
      WriteBytes(device, stream, arena->range(spans[i]).base, Pattern(64, i));
    }
    auto over = Residency::Create(*arena);
    EXPECT_OK(over);
    if (over.ok()) residency = *std::move(over);
  }
  void ExpectContents(Device& device, Stream& stream) {
    for (std::size_t i = 0; i < spans.size(); ++i) {
      EXPECT_EQ(ReadBytes(device, stream, {arena->range(spans[i]).base, 64}), Pattern(64, i));
    }
  }
};

TEST(ResidencyConflictsTest, WakeBesideANeighbourThatHoldsTheMemoryStaysWholeAndAsleep) {
  const std::uint64_t g = TestHostDevice()->info().granularity;
  auto device = TestHostDevice({.host_capacity_bytes = 20 * g});
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("test"));
  {
    ManySpans many(*device, *stream, 20, "many");
    ASSERT_OK(many.residency->Sleep({"t"}, Soon()));
    const std::uint64_t backing = many.residency->backing_bytes();
    Hog hog{*device, {}};
    ASSERT_OK(hog.Take(12 * g));  // 8 of 20 are left
    const std::uint64_t own = device->Memory()->own_bytes;
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(many.residency->Wake({"t"}), IsErrorKind(ErrorKind::kOutOfMemory));
      EXPECT_TRUE(many.residency->asleep("t"));
      EXPECT_EQ(device->Memory()->own_bytes, own);
      EXPECT_EQ(many.residency->backing_bytes(), backing);
    }
    hog.Release();
    ASSERT_OK(many.residency->Wake({"t"}));
    many.ExpectContents(*device, *stream);
  }
  stream.reset();
  EXPECT_TRUE(device->calls().Balanced());
}

TEST(ResidencyConflictsTest, AFailedWakeIsNotRemembered) {
  ResidencyRig rig;
  const ResidencyRig::State awake = rig.Look();
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
    rig.device->calls().FailAt(1, {Call::kMap});
    EXPECT_THAT(rig.residency->Wake(AllTags()), IsErrorKind(ErrorKind::kDriver));
    EXPECT_TRUE(rig.device->calls().Disarm());
    for (const std::string& tag : AllTags()) {
      EXPECT_THAT(rig.arena->CheckReady({tag}), IsErrorKind(ErrorKind::kAsleep));
    }
    ASSERT_OK(rig.residency->Wake(AllTags()));
    EXPECT_OK(rig.arena->CheckReady(AllTags()));
    EXPECT_EQ(rig.Look(), awake);
  }
}

TEST(ResidencyConflictsTest, WorkOnTwoTagsWaitsForBothInEitherOrder) {
  for (const auto& [first, second] : {std::pair{"weights", "kv_cache"}, {"kv_cache", "weights"}}) {
    ResidencyRig rig;
    const ResidencyRig::State awake = rig.Look();
    ASSERT_OK(rig.residency->Sleep({"weights", "kv_cache"}, Soon()));
    ASSERT_OK(rig.residency->Wake({first}));
    EXPECT_THAT(rig.arena->CheckReady({"weights", "kv_cache"}), IsErrorKind(ErrorKind::kAsleep));
    EXPECT_OK(rig.arena->CheckReady({first}));
    ASSERT_OK(rig.residency->Wake({second}));
    EXPECT_OK(rig.arena->CheckReady({"weights", "kv_cache"}));
    EXPECT_EQ(rig.Look(), awake);
  }
}

TEST(ResidencyConflictsTest, RepeatedCallsAndFreesWhileAsleepChangeNothing) {
  auto device = TestDevice();
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("test"));
  {
    ManySpans many(*device, *stream, 4, "many");
    ASSERT_OK(many.residency->Sleep({"t"}, Soon()));
    const std::uint64_t epoch = many.arena->epoch(), backing = many.residency->backing_bytes();
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK_AND_ASSIGN(const TransitionReport again, many.residency->Sleep({"t"}, Soon()));
      EXPECT_TRUE(again.tags.empty());
      EXPECT_EQ(again.freed_bytes, 0u);
      EXPECT_THAT(many.arena->Free(many.spans[2], Soon()), IsErrorKind(ErrorKind::kAsleep));
    }
    EXPECT_EQ(many.arena->epoch(), epoch);
    EXPECT_EQ(many.residency->backing_bytes(), backing);
    ASSERT_OK(many.residency->Wake({"t"}));
    ASSERT_OK_AND_ASSIGN(const TransitionReport again, many.residency->Wake({"t"}));
    EXPECT_TRUE(again.tags.empty());
    many.ExpectContents(*device, *stream);
  }
  stream.reset();
  EXPECT_TRUE(device->calls().Balanced());
}

// Two arenas of one device, each of which needs 60 % of it: one sleeps while the other wakes.
TEST(ResidencyConflictsTest, SwappingTwoArenasWaitsForMemoryAndNeverHasBothAwake) {
  constexpr int kEach = 3;
  const std::uint64_t g = TestHostDevice()->info().granularity;
  auto device = TestHostDevice({.host_capacity_bytes = 5 * g});
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("test"));
  {
    ManySpans a(*device, *stream, kEach, "a");
    ASSERT_OK(a.residency->Sleep({"t"}, Soon()));
    ManySpans b(*device, *stream, kEach, "b");
    ManySpans* awake = &b;
    ManySpans* asleep = &a;
    for (int round = 0; round < 50; ++round) {
      absl::Status slept, woken;
      std::thread sleeper([&] { slept = awake->residency->Sleep({"t"}, Soon()).status(); });
      std::thread waker(
          [&] { woken = asleep->residency->Wake({"t"}, {.memory_deadline = Soon()}).status(); });
      sleeper.join();
      waker.join();
      ASSERT_OK(slept);
      ASSERT_OK(woken);
      std::swap(awake, asleep);
      ASSERT_EQ(device->Memory()->own_bytes, kEach * g);
    }
    awake->ExpectContents(*device, *stream);
    // Without a deadline the answer comes at once, and the sleeper stays as it is.
    EXPECT_THAT(asleep->residency->Wake({"t"}), IsErrorKind(ErrorKind::kOutOfMemory));
    EXPECT_TRUE(asleep->residency->asleep("t"));
  }
  stream.reset();
  EXPECT_TRUE(device->calls().Balanced());
}

TEST(ResidencyConflictsTest, SixteenCallersMakeOneTransitionAnEdge) {
  constexpr int kThreads = 8, kRounds = 20;
  ResidencyRig rig;
  const ResidencyRig::State before = rig.Look();
  const std::uint64_t epoch = rig.arena->epoch();
  std::atomic<int> slept{0}, woken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        const auto report = rig.residency->Sleep(AllTags(), Soon());
        EXPECT_OK(report);
        if (report.ok() && !report->tags.empty()) ++slept;
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        const auto report = rig.residency->Wake(AllTags());
        EXPECT_OK(report);
        if (report.ok() && !report->tags.empty()) ++woken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Each real transition bumps the epoch once, and they alternate.
  EXPECT_EQ(rig.arena->epoch() - epoch, static_cast<std::uint64_t>(slept + woken));
  EXPECT_EQ(slept - woken, rig.residency->asleep("weights") ? 1 : 0);
  EXPECT_GE(slept, 1);
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.Look(), before);
  EXPECT_EQ(rig.Read("w0"), rig.Expected("w0", 1));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
}

// A transition held in its middle, for as long as a reader takes to ask a thousand times.
TEST(ResidencyConflictsTest, AReaderIsAnsweredWhileATransitionStandsStill) {
  ResidencyRig rig;
  std::atomic<bool> inside{false}, answered{false};
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  rig.refill_override = [&] {
    inside.store(true);
    while (!answered.load()) std::this_thread::yield();
    return absl::OkStatus();
  };
  std::thread waker([&] { EXPECT_OK(rig.residency->Wake(AllTags())); });
  while (!inside.load()) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) {
    for (const std::string& tag : AllTags()) EXPECT_TRUE(rig.residency->asleep(tag));
    EXPECT_THAT(rig.arena->CheckReady({"weights"}), IsErrorKind(ErrorKind::kAsleep));
  }
  answered.store(true);
  waker.join();
  for (const std::string& tag : AllTags()) EXPECT_FALSE(rig.residency->asleep(tag));
}

TEST(ResidencyConflictsTest, FreedMemoryCanBeHadTheMomentSleepReturns) {
  const std::uint64_t g = TestHostDevice()->info().granularity;
  auto device = TestHostDevice({.host_capacity_bytes = 3 * g});
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("test"));
  ManySpans many(*device, *stream, 3, "many");
  for (int round = 0; round < 100; ++round) {
    Hog hog{*device, {}};
    EXPECT_THAT(hog.Take(g), IsErrorKind(ErrorKind::kOutOfMemory));  // the device is full
    ASSERT_OK_AND_ASSIGN(const TransitionReport slept, many.residency->Sleep({"t"}, Soon()));
    EXPECT_OK(hog.Take(slept.freed_bytes));
    hog.Release();
    ASSERT_OK(many.residency->Wake({"t"}));
  }
  many.ExpectContents(*device, *stream);
}

}  // namespace
}  // namespace holdfast
