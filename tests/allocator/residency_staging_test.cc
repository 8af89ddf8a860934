// Verifies that contents loaded through the pool leave their copy there, and that a loader that did
// not do what it should is found out.
#include <cstring>

#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

// Two spans over three chunks, so that the second lies in two of them.
class StagedLoad {
 public:
  explicit StagedLoad(std::shared_ptr<BackingPool> pool = nullptr, Device* on = nullptr)
      : device(on != nullptr ? nullptr : TestDevice()), used(on != nullptr ? *on : *device) {
    Build(std::move(pool));
  }

  // What a loader does with one span: into the room, and to the device from there.
  void Load(SpanId span, std::uint64_t seed, std::uint64_t leave_out = 0) {
    const AddressRange range = arena->range(span);
    const Bytes bytes = Pattern(range.bytes, seed);
    absl::StatusOr<std::vector<StagedPiece>> pieces = residency->Stage(span);
    ASSERT_OK(pieces);
    std::uint64_t done = 0;
    for (const StagedPiece& piece : *pieces) {
      EXPECT_EQ(piece.device.base, range.base + done);
      std::memcpy(piece.host, bytes.data() + done, piece.device.bytes);
      done += piece.device.bytes;
      if (done == range.bytes && leave_out > 0) continue;
      ASSERT_OK(used.CopyToDevice(*stream, piece.device.base, piece.host, piece.device.bytes));
    }
    EXPECT_EQ(done, range.bytes);
    ASSERT_OK(used.Synchronize(*stream));
  }
  bool Holds(SpanId span, std::uint64_t seed) {
    const AddressRange range = arena->range(span);
    return ReadBytes(used, *stream, range) == Pattern(range.bytes, seed);
  }
  std::uint64_t copies() { return used.calls().succeeded(Call::kCopy); }

  std::unique_ptr<Device> device;
  Device& used;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Residency> residency;
  SpanId first, second;

 private:
  void Build(std::shared_ptr<BackingPool> pool) {
    const std::uint64_t g = used.info().granularity;
    absl::StatusOr<std::unique_ptr<Arena>> made = Arena::Create(
        used, {.groups = {{"w", Role::kImmutable, 3 * g, g}, {"kv", Role::kCache, g, g}}});
    ASSERT_OK(made);
    arena = *std::move(made);
    absl::StatusOr<std::unique_ptr<Stream>> work = used.CreateStream("loader");
    ASSERT_OK(work);
    stream = *std::move(work);
    first = Reserve("first", g / 2 + 77);
    second = Reserve("second", g + g / 2 + 5);
    ASSERT_OK(arena->CommitTag("w"));
    absl::StatusOr<std::unique_ptr<Residency>> over =
        Residency::Create(*arena, {.pool = std::move(pool)});
    ASSERT_OK(over);
    residency = *std::move(over);
  }
  SpanId Reserve(const std::string& name, std::uint64_t bytes) {
    absl::StatusOr<SpanId> span = arena->Reserve(
        {.name = name, .tag = "w", .role = Role::kImmutable, .bytes = bytes, .alignment = 4096});
    EXPECT_OK(span);
    return span.ok() ? *span : SpanId{};
  }
};

TEST(ResidencyStagingTest, FirstSleepCopiesNothing) {
  StagedLoad load;
  load.Load(load.first, 1);
  load.Load(load.second, 2);
  ASSERT_OK(load.arena->Seal("w"));
  ASSERT_OK(load.residency->AdoptStaged("w"));
  const std::uint64_t copies = load.copies();
  const std::uint64_t hashes = load.used.calls().succeeded(Call::kHash);
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept, load.residency->Sleep({"w"}, Soon()));
  EXPECT_EQ(load.copies(), copies);
  EXPECT_EQ(load.used.calls().succeeded(Call::kHash), hashes);
  EXPECT_EQ(slept.tags[0].kept_bytes, 0u);
  EXPECT_GT(slept.tags[0].clean_bytes, load.arena->range(load.second).bytes);
  ASSERT_OK(load.residency->Wake({"w"}));
  EXPECT_TRUE(load.Holds(load.first, 1));
  EXPECT_TRUE(load.Holds(load.second, 2));
}

// A room that held something else before: what lies between the spans has to be cleared.
TEST(ResidencyStagingTest, ReusedRoomsAreAsGoodAsFreshOnes) {
  auto device = TestDevice();
  auto pool = BackingPool::Create(*device);
  {
    StagedLoad before(pool, device.get());
    for (const SpanId span : {before.first, before.second}) before.Load(span, 3);
    WriteBytes(*device, *before.stream, before.arena->range(before.first).end(),
               Bytes(4096 - 77, 0xEE));
    ASSERT_OK(before.residency->Sleep({"w"}, Soon()));
  }
  EXPECT_GT(pool->idle_bytes(), 0u);
  StagedLoad load(pool, device.get());
  load.Load(load.first, 4);
  load.Load(load.second, 5);
  ASSERT_OK(load.residency->AdoptStaged("w"));
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept, load.residency->Sleep({"w"}, Soon()));
  EXPECT_EQ(slept.tags[0].kept_bytes, 0u);
}

TEST(ResidencyStagingTest, ALoaderThatForgotAPieceIsRefused) {
  StagedLoad load;
  load.Load(load.first, 1);
  load.Load(load.second, 2, /*leave_out=*/1);
  const absl::Status refused = load.residency->AdoptStaged("w");
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kCorrupted));
  EXPECT_EQ(GetErrorInfo(refused)->object, "second");
  // The rooms are then no backups: what the device holds is what is kept.
  const Bytes on_device = ReadBytes(load.used, *load.stream, load.arena->range(load.second));
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept, load.residency->Sleep({"w"}, Soon()));
  EXPECT_EQ(slept.tags[0].clean_bytes, 0u);
  ASSERT_OK(load.residency->Wake({"w"}));
  EXPECT_EQ(ReadBytes(load.used, *load.stream, load.arena->range(load.second)), on_device);
}

// A span that never came: its part of the shared room is not what the device holds, or both are
// zero.
TEST(ResidencyStagingTest, StagedRoomsAreNotTrustedBeforeTheyAreAdopted) {
  StagedLoad load;
  load.Load(load.first, 1);
  load.Load(load.second, 2);
  WriteBytes(load.used, *load.stream, load.arena->range(load.first).base, Pattern(64, 9));
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept, load.residency->Sleep({"w"}, Soon()));
  EXPECT_EQ(slept.tags[0].clean_bytes, 0u);
  ASSERT_OK(load.residency->Wake({"w"}));
  EXPECT_EQ(ReadBytes(load.used, *load.stream, {load.arena->range(load.first).base, 64}),
            Pattern(64, 9));
}

TEST(ResidencyStagingTest, TrimLeavesRoomsThatALoaderWritesTo) {
  StagedLoad load;
  ASSERT_OK_AND_ASSIGN(const auto pieces, load.residency->Stage(load.first));
  EXPECT_EQ(load.residency->TrimHost(/*forget_clean=*/true), 0u);
  EXPECT_GT(load.residency->backing_bytes(), 0u);
  std::memset(pieces[0].host, 1, pieces[0].device.bytes);
}

TEST(ResidencyStagingTest, BadRequestsAreRefused) {
  StagedLoad load;
  const std::uint64_t g = load.used.info().granularity;
  EXPECT_THAT(load.residency->Stage(SpanId{}), IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(
      const SpanId kv,
      load.arena->Reserve({.name = "kv", .tag = "kv", .role = Role::kCache, .bytes = g}));
  EXPECT_THAT(load.residency->Stage(kv), IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK(load.residency->Stage(load.second));
  ASSERT_OK_AND_ASSIGN(
      const SpanId late,
      load.arena->Reserve(
          {.name = "late", .tag = "w", .role = Role::kImmutable, .bytes = g / 2 - 8 * kKiB}));
  // The last chunk's room would have to grow under the loader's hands.
  EXPECT_THAT(load.residency->Stage(late), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(load.residency->AdoptStaged("nobody"), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_OK(load.residency->AdoptStaged("kv"));
}

TEST(ResidencyStagingTest, AsleepSpansCannotBeStaged) {
  StagedLoad load;
  ASSERT_OK(load.residency->Sleep({"w"}, Soon()));
  EXPECT_THAT(load.residency->Stage(load.first), IsErrorKind(ErrorKind::kAsleep));
  ASSERT_OK(load.residency->Wake({"w"}));
}

}  // namespace
}  // namespace holdfast
