// Verifies that pages come all or nothing, at fixed addresses, zeroed, and that a seal makes them
// read-only.
#include "allocator/arena.h"
#include "gtest/gtest.h"
#include "tests/allocator/bytes_on_device.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

class ArenaCommitTest : public testing::Test {
 protected:
  void Open(const DeviceOptions& options = {}, bool host_only = false) {
    device_ = host_only ? TestHostDevice(options) : TestDevice(options);
    g_ = device_->info().granularity;
    auto arena = Arena::Create(*device_, {.groups = {{"weights", Role::kImmutable, 4 * g_, 2 * g_},
                                                     {"weights", Role::kMutable, 4 * g_, g_},
                                                     {"kv", Role::kCache, 64 * g_, 4 * g_}}});
    ASSERT_OK(arena);
    arena_ = *std::move(arena);
    auto stream = device_->CreateStream("test");
    ASSERT_OK(stream);
    stream_ = *std::move(stream);
  }
  SpanId Add(const std::string& name, const std::string& tag, Role role, std::uint64_t bytes) {
    auto id = arena_->Reserve({.name = name, .tag = tag, .role = role, .bytes = bytes});
    EXPECT_OK(id);
    return id.ok() ? *id : SpanId{};
  }
  std::uint64_t own_bytes() { return device_->Memory()->own_bytes; }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t g_ = 0;
};

// A span is committed with everything before it, in chunks of at most the group's size.
TEST_F(ArenaCommitTest, CommitExtendsThePrefix) {
  Open();
  const SpanId a = Add("a", "kv", Role::kCache, 3 * g_ + 1);
  const SpanId b = Add("b", "kv", Role::kCache, 6 * g_);
  ASSERT_OK(arena_->Commit(b, 1));
  EXPECT_EQ(own_bytes(), 4 * g_);
  EXPECT_EQ(arena_->groups()[2].chunks.size(), 1u);
  ASSERT_OK(arena_->Commit(a));  // already there
  EXPECT_EQ(own_bytes(), 4 * g_);
  ASSERT_OK(arena_->Commit(b));
  EXPECT_EQ(own_bytes(), 10 * g_);
  for (const ArenaChunk& chunk : arena_->groups()[2].chunks) {
    EXPECT_LE(chunk.range.bytes, 4 * g_);
    EXPECT_EQ(device_->Query(chunk.range.base).access, Access::kReadWrite);
  }
  EXPECT_FALSE(device_->Query(arena_->range(a).base + 10 * g_).mapped);
}

TEST_F(ArenaCommitTest, NewPagesReadAsZero) {
  Open();
  const SpanId a = Add("a", "kv", Role::kCache, 2 * g_);
  ASSERT_OK(arena_->Commit(a));
  EXPECT_TRUE(AllBytesAre(ReadBytes(*device_, *stream_, arena_->range(a)), 0));
}

// A thousand small spans share pages: not one granule each. Field case 36.
TEST_F(ArenaCommitTest, SmallSpansShareChunks) {
  Open();
  for (int i = 0; i < 1000; ++i) {
    const SpanId span = Add("w" + std::to_string(i), "weights", Role::kMutable, 4096);
    ASSERT_OK(arena_->Commit(span));
  }
  EXPECT_LE(own_bytes(), 4 * kMiB);
  for (const TagBytes& row : arena_->bytes_by_tag()) {
    if (row.role != Role::kMutable) continue;
    EXPECT_EQ(row.spans, 1000u);
    EXPECT_EQ(row.logical_bytes, 1000u * 4096u);
    EXPECT_EQ(row.committed_bytes, AlignUp(1000 * 4096, g_));
    EXPECT_EQ(row.resident_bytes, row.committed_bytes);
  }
}

TEST_F(ArenaCommitTest, CommitRefusesWhatIsNotThere) {
  Open();
  const SpanId a = Add("a", "kv", Role::kCache, 100);
  EXPECT_THAT(arena_->Commit(a, 101), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(arena_->Commit(SpanId{}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(arena_->CommitTag("none"), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_OK(arena_->Commit(a, 0));
  EXPECT_EQ(own_bytes(), 0u);
}

// Short capacity: the error has both figures, no page stays, and less still works.
TEST_F(ArenaCommitTest, CommitIsAllOrNothingUnderCapacity) {
  Open({.host_capacity_bytes = 24 * kMiB}, /*host_only=*/true);
  const SpanId a = Add("a", "kv", Role::kCache, 32 * g_);
  const absl::Status refused = arena_->Commit(a);
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_GT(GetErrorInfo(refused)->need, GetErrorInfo(refused)->have);
  EXPECT_EQ(own_bytes(), 0u);
  EXPECT_FALSE(device_->Query(arena_->range(a).base).mapped);
  EXPECT_OK(arena_->Commit(a, 8 * g_));
  EXPECT_EQ(own_bytes(), 8 * g_);
}

// Whichever device call fails, the arena is as before and the same commit works afterwards.
TEST_F(ArenaCommitTest, FailureAtEveryCallLeavesNoPage) {
  std::uint64_t k = 1;
  for (;; ++k) {
    Open();
    Add("a", "weights", Role::kImmutable, 3 * g_);
    Add("b", "weights", Role::kMutable, 2 * g_);
    device_->calls().FailAt(k);
    const absl::Status status = arena_->CommitTag("weights");
    if (!device_->calls().Disarm()) {
      EXPECT_OK(status);
      break;
    }
    EXPECT_THAT(status, IsErrorKind(ErrorKind::kDriver)) << "call " << k;
    EXPECT_EQ(own_bytes(), 0u) << "call " << k;
    EXPECT_OK(arena_->CommitTag("weights")) << "call " << k;
    EXPECT_EQ(own_bytes(), 5 * g_) << "call " << k;
    stream_.reset();
    arena_.reset();
    EXPECT_TRUE(device_->calls().Balanced()) << "call " << k;
  }
  EXPECT_GT(k, 12u);  // four chunks: created, mapped, accessible
  stream_.reset();
  arena_.reset();
}

// Seal lowers the immutable groups of the tag only; they take no more spans or pages.
TEST_F(ArenaCommitTest, SealMakesImmutableGroupsReadOnly) {
  Open();
  const SpanId w = Add("w", "weights", Role::kImmutable, 3 * g_);
  const SpanId m = Add("m", "weights", Role::kMutable, g_);
  EXPECT_THAT(arena_->Seal("weights"), IsErrorKind(ErrorKind::kInvalidArgument));  // not committed
  ASSERT_OK(arena_->CommitTag("weights"));
  EXPECT_THAT(arena_->Seal("kv"), IsErrorKind(ErrorKind::kNotFound));
  ASSERT_OK(arena_->Seal("weights"));
  ASSERT_OK(arena_->Seal("weights"));
  EXPECT_EQ(device_->Query(arena_->range(w).base).access, Access::kRead);
  EXPECT_EQ(device_->Query(arena_->range(w).base + 2 * g_).access, Access::kRead);
  EXPECT_EQ(device_->Query(arena_->range(m).base).access, Access::kReadWrite);
  EXPECT_THAT(
      arena_->Reserve({.name = "x", .tag = "weights", .role = Role::kImmutable, .bytes = 1}),
      IsErrorKind(ErrorKind::kLocked));
  // Negative control of "writers fault": refused at the call or when it runs, and only there.
  absl::Status write = device_->Fill(*stream_, arena_->range(m).base, 1, 16);
  if (write.ok()) write = device_->Synchronize(*stream_);
  EXPECT_OK(write);
}

TEST_F(ArenaCommitTest, SealedPagesRefuseWriters) {
  Open({}, /*host_only=*/true);
  const SpanId w = Add("w", "weights", Role::kImmutable, g_);
  ASSERT_OK(arena_->Commit(w));
  ASSERT_OK(device_->Fill(*stream_, arena_->range(w).base, 1, 16));
  ASSERT_OK(device_->Synchronize(*stream_));
  ASSERT_OK(arena_->Seal("weights"));
  absl::Status write = device_->Fill(*stream_, arena_->range(w).base, 2, 16);
  if (write.ok()) write = device_->Synchronize(*stream_);
  EXPECT_FALSE(write.ok());
}

TEST_F(ArenaCommitTest, FailedSealLeavesPagesWritable) {
  Open();
  const SpanId w = Add("w", "weights", Role::kImmutable, g_);
  ASSERT_OK(arena_->Commit(w));
  device_->calls().FailAt(1, {Call::kSetAccess});
  EXPECT_THAT(arena_->Seal("weights"), IsErrorKind(ErrorKind::kDriver));
  EXPECT_TRUE(device_->calls().Disarm());
  EXPECT_EQ(device_->Query(arena_->range(w).base).access, Access::kReadWrite);
  EXPECT_OK(arena_->Seal("weights"));
}

}  // namespace
}  // namespace holdfast
