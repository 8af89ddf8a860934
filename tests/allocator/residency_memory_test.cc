// Verifies that a wake can wait for device memory that somebody else holds, and that local memory
// goes with the last that sleeps and comes with the first that wakes.
#include <thread>

#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kChunks = 12;  // of the host device; the rig takes 7

RigOptions SmallHost() {
  return {
      .host_only = true, .device = {.host_capacity_bytes = kChunks * 2 * kMiB}, .residency = {}};
}

// A tag that the neighbour's memory would be needed for waits until it is given back.
TEST(ResidencyMemoryTest, WakeWaitsForANeighbour) {
  ResidencyRig rig(SmallHost());
  const std::uint64_t g = rig.device->info().granularity;
  const ResidencyRig::State awake = rig.Look();
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle neighbour, rig.device->CreateChunk(8 * g));
  const std::uint64_t releases = rig.device->calls().succeeded(Call::kReleaseChunk);
  absl::StatusOr<TransitionReport> woken;
  std::thread waker([&] { woken = rig.residency->Wake(AllTags(), {.memory_deadline = Soon()}); });
  // It has tried at least twice, and taken back what it made, when this many have been released.
  while (rig.device->calls().succeeded(Call::kReleaseChunk) < releases + 6) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(rig.residency->asleep("weights"));
  ASSERT_OK(rig.device->ReleaseChunk(neighbour));
  waker.join();
  ASSERT_OK(woken);
  EXPECT_GT(woken->attempts, 1u);
  EXPECT_EQ(rig.Look(), awake);
  EXPECT_EQ(rig.Read("w0"), rig.Expected("w0", 1));
}

// What frees the memory may be a sleep of the same arena: it is not held up by the one that waits.
TEST(ResidencyMemoryTest, ASleepOfTheSameArenaFreesTheMemory) {
  ResidencyRig rig(SmallHost());
  const std::uint64_t g = rig.device->info().granularity;
  ASSERT_OK(rig.residency->Sleep({"weights"}, Soon()));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle neighbour, rig.device->CreateChunk(6 * g));
  std::thread waker(
      [&] { EXPECT_OK(rig.residency->Wake({"weights"}, {.memory_deadline = Soon()})); });
  ASSERT_OK(rig.residency->Sleep({"kv_cache"}, Soon()));
  waker.join();
  EXPECT_EQ(rig.Read("w1"), rig.Expected("w1", 2));
  ASSERT_OK(rig.device->ReleaseChunk(neighbour));
  ASSERT_OK(rig.residency->Wake(AllTags()));
}

TEST(ResidencyMemoryTest, TheDeadlineEndsTheWait) {
  ResidencyRig rig(SmallHost());
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle neighbour,
                       rig.device->CreateChunk(8 * rig.device->info().granularity));
  const ResidencyRig::State asleep = rig.Look();
  EXPECT_THAT(rig.residency->Wake(AllTags(), {.memory_deadline = In(std::chrono::milliseconds(5))}),
              IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_EQ(rig.Look(), asleep);
  ASSERT_OK(rig.device->ReleaseChunk(neighbour));
  ASSERT_OK(rig.residency->Wake(AllTags()));
}

// A deadline of zero is a sleep or a wake that does not wait.
TEST(ResidencyMemoryTest, ZeroDeadlinesDoNotWait) {
  ResidencyRig rig(SmallHost());
  ASSERT_OK(rig.residency->Sleep(AllTags(), Residency::Deadline{}));
  ASSERT_OK(rig.residency->Wake(AllTags(), {.memory_deadline = Residency::Deadline{}}));
  const auto inside = rig.arena->gate().Enter();
  EXPECT_THAT(rig.residency->Sleep(AllTags(), Residency::Deadline{}),
              IsErrorKind(ErrorKind::kDeadlineExceeded));
  EXPECT_FALSE(rig.residency->asleep("state"));
}

// Any call may fail in an attempt that follows one that had no memory.
TEST(ResidencyMemoryTest, ARetryMayFailAtAnyCall) {
  for (std::uint64_t k = 1;; ++k) {
    SCOPED_TRACE("call " + std::to_string(k));
    ResidencyRig rig(SmallHost());
    const ResidencyRig::State awake = rig.Look();
    ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
    ASSERT_OK_AND_ASSIGN(const ChunkHandle neighbour,
                         rig.device->CreateChunk(8 * rig.device->info().granularity));
    EXPECT_FALSE(
        rig.residency->Wake(AllTags(), {.memory_deadline = In(std::chrono::milliseconds(1))}).ok());
    ASSERT_OK(rig.device->ReleaseChunk(neighbour));
    rig.device->calls().FailAt(k);
    const auto woken = rig.residency->Wake(AllTags(), {.memory_deadline = Soon()});
    const bool fired = rig.device->calls().Disarm();
    if (!woken.ok()) {
      EXPECT_THAT(woken, IsErrorKind(ErrorKind::kDriver));
      EXPECT_EQ(rig.device->Memory()->own_bytes, 0u);
      ASSERT_OK(rig.residency->Wake(AllTags()));
    }
    EXPECT_EQ(rig.Look(), awake);
    EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
    if (!fired || testing::Test::HasFailure()) break;
  }
}

// -- Local memory ---------------------------------------------------------------------------------

constexpr std::uint64_t kLocal = 4 * kMiB;

RigOptions WithLocalMemory(std::uint64_t capacity) {
  return {
      .host_only = true,
      .device = {.host_capacity_bytes = capacity, .host_driver = {.local_memory_bytes = kLocal}},
      .residency = {}};
}

TEST(ResidencyMemoryTest, LocalMemoryGoesWithTheLastTag) {
  ResidencyRig rig(WithLocalMemory(64 * kMiB));
  const std::uint64_t whole = rig.device->Memory()->free_bytes + rig.device->Memory()->own_bytes;
  ASSERT_OK(rig.residency->Sleep({"weights", "state"}, Soon()));
  EXPECT_EQ(rig.device->Memory()->free_bytes + rig.device->Memory()->own_bytes, whole);
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  EXPECT_EQ(rig.device->Memory()->free_bytes, whole + kLocal);
  ASSERT_OK(rig.residency->Wake({"state"}));
  EXPECT_EQ(rig.device->Memory()->free_bytes + rig.device->Memory()->own_bytes, whole);
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.device->Memory()->free_bytes + rig.device->Memory()->own_bytes, whole);
}

// A second arena that is awake needs it still.
TEST(ResidencyMemoryTest, LocalMemoryStaysForAnotherArena) {
  ResidencyRig rig(WithLocalMemory(64 * kMiB));
  ASSERT_OK_AND_ASSIGN(auto other,
                       Arena::Create(*rig.device, {.groups = {{"x", Role::kCache, kMiB}}}));
  ASSERT_OK_AND_ASSIGN(auto over, Residency::Create(*other));
  const std::uint64_t whole = rig.device->Memory()->free_bytes + rig.device->Memory()->own_bytes;
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  EXPECT_EQ(rig.device->Memory()->free_bytes, whole);
  ASSERT_OK(over->Sleep({"x"}, Soon()));
  EXPECT_EQ(rig.device->Memory()->free_bytes, whole + kLocal);
  ASSERT_OK(rig.residency->Wake(AllTags()));
  ASSERT_OK(over->Wake({"x"}));
}

// Where it cannot be had again, the wake does not happen.
TEST(ResidencyMemoryTest, LocalMemoryIsTakenBeforeTheWakeCommits) {
  ResidencyRig rig(WithLocalMemory(24 * kMiB));
  const std::uint64_t g = rig.device->info().granularity;
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  const std::uint64_t free_bytes = rig.device->Memory()->free_bytes;
  ASSERT_OK_AND_ASSIGN(const ChunkHandle neighbour, rig.device->CreateChunk(free_bytes - 2 * g));
  EXPECT_THAT(rig.residency->Wake({"state"}, {.memory_deadline = In(std::chrono::milliseconds(1))}),
              IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_EQ(rig.device->Memory()->free_bytes, 2 * g);
  EXPECT_TRUE(rig.residency->asleep("state"));
  ASSERT_OK(rig.device->ReleaseChunk(neighbour));
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
}

}  // namespace
}  // namespace holdfast
