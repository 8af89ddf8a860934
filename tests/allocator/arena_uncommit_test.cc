// Verifies that a span shrinks in place: whole chunks go back, nothing moves, what is kept is
// untouched, and no page goes while work may touch it.
#include <optional>

#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"
#include "testing/gate.h"

namespace holdfast {
namespace {

class ArenaUncommitTest : public testing::Test {
 protected:
  ArenaUncommitTest() {
    auto arena = Arena::Create(*device_, {.name = "shrink",
                                          .groups = {{"kv", Role::kCache, 16 * g_, 2 * g_},
                                                     {"state", Role::kMutable, 8 * g_, g_},
                                                     {"weights", Role::kImmutable, 4 * g_, g_}}});
    EXPECT_OK(arena);
    arena_ = *std::move(arena);
    auto stream = device_->CreateStream("test");
    EXPECT_OK(stream);
    stream_ = *std::move(stream);
  }
  SpanId Add(const std::string& name, std::uint64_t bytes, const std::string& tag = "kv",
             Role role = Role::kCache) {
    auto id = arena_->Reserve({.name = name, .tag = tag, .role = role, .bytes = bytes});
    EXPECT_OK(id);
    return id.ok() ? *id : SpanId{};
  }
  std::uint64_t own_bytes() { return device_->Memory()->own_bytes; }

  std::unique_ptr<Device> device_ = TestDevice();
  const std::uint64_t g_ = device_->info().granularity;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(ArenaUncommitTest, GivesWholeChunksBackAndKeepsTheRestInPlace) {
  const SpanId kv = Add("kv", 16 * g_);
  ASSERT_OK(arena_->Commit(kv, 8 * g_));  // four chunks of two granules
  arena_->Lock();
  const AddressRange range = arena_->range(kv);
  const Bytes kept = Pattern(4 * g_, 1);
  WriteBytes(*device_, *stream_, range.base, kept);
  const std::uint64_t epoch = arena_->epoch();

  // The second chunk is cut into by what is kept, so it stays.
  ASSERT_OK_AND_ASSIGN(const std::uint64_t back, arena_->Uncommit(kv, 3 * g_, Soon()));
  EXPECT_EQ(back, 4 * g_);
  EXPECT_EQ(own_bytes(), 4 * g_);
  EXPECT_EQ(arena_->committed_bytes(kv), 4 * g_);
  EXPECT_EQ(arena_->range(kv), range);
  EXPECT_NE(arena_->epoch(), epoch);
  EXPECT_FALSE(device_->Query(range.base + 4 * g_).mapped);
  EXPECT_FALSE(arena_->gate().closed());
  EXPECT_EQ(ReadBytes(*device_, *stream_, {range.base, 4 * g_}), kept);

  // Nothing more to give: no transition.
  const std::uint64_t after = arena_->epoch();
  EXPECT_EQ(*arena_->Uncommit(kv, 3 * g_, Soon()), 0u);
  EXPECT_EQ(arena_->epoch(), after);
  // It grows again, with new pages at the old addresses.
  ASSERT_OK(arena_->Commit(kv, 8 * g_));
  EXPECT_TRUE(AllBytesAre(ReadBytes(*device_, *stream_, {range.base + 4 * g_, 4 * g_}), 0));
  EXPECT_EQ(*arena_->Uncommit(kv, 0, Soon()), 8 * g_);
  EXPECT_EQ(own_bytes(), 0u);
}

TEST_F(ArenaUncommitTest, RefusesWhatIsNotThereAsleepOrSealed) {
  const SpanId kv = Add("kv", 4 * g_);
  const SpanId w = Add("w", g_, "weights", Role::kImmutable);
  ASSERT_OK(arena_->Commit(kv));
  ASSERT_OK(arena_->Commit(w));
  EXPECT_THAT(arena_->Uncommit(SpanId{}, 0, Soon()), IsErrorKind(ErrorKind::kInvalidArgument));
  const absl::Status beyond = arena_->Uncommit(kv, 4 * g_ + 1, Soon()).status();
  EXPECT_THAT(beyond, IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(GetErrorInfo(beyond)->need, 4 * g_ + 1);
  ASSERT_OK(arena_->Seal("weights"));
  EXPECT_THAT(arena_->Uncommit(w, 0, Soon()), IsErrorKind(ErrorKind::kLocked));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Residency> residency, Residency::Create(*arena_));
  ASSERT_OK(residency->Sleep({"kv"}, Soon()));
  EXPECT_THAT(arena_->Uncommit(kv, 0, Soon()), IsErrorKind(ErrorKind::kAsleep));
  ASSERT_OK(residency->Wake({"kv"}));
  EXPECT_EQ(own_bytes(), 5 * g_);
  EXPECT_OK(arena_->Uncommit(kv, 2 * g_, Soon()));
  // The pages that stayed, and no others, come back.
  ASSERT_OK(residency->Sleep({"kv"}, Soon()));
  EXPECT_EQ(own_bytes(), g_);
  ASSERT_OK(residency->Wake({"kv"}));
  EXPECT_EQ(own_bytes(), 3 * g_);
}

TEST_F(ArenaUncommitTest, RefusesPagesThatALaterSpanHasToo) {
  const SpanId a = Add("a", 3 * g_);
  const SpanId b = Add("b", g_);
  ASSERT_OK(arena_->Commit(b));
  const absl::Status refused = arena_->Uncommit(a, 0, Soon()).status();
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kHeld));
  EXPECT_NE(refused.message().find("those of b"), absl::string_view::npos);
  EXPECT_EQ(own_bytes(), 4 * g_);
  // The last one may; then what lay before it.
  EXPECT_OK(arena_->Uncommit(b, 0, Soon()));
  EXPECT_EQ(own_bytes(), 4 * g_);  // one chunk holds the ends of both
  EXPECT_THAT(arena_->Uncommit(a, 0, Soon()), IsErrorKind(ErrorKind::kHeld));
  ASSERT_OK(arena_->Free(b, Soon()));
  EXPECT_EQ(*arena_->Uncommit(a, 2 * g_, Soon()), 2 * g_);
}

TEST_F(ArenaUncommitTest, RefusesWhatSomebodyRegistered) {
  const SpanId kv = Add("kv", 4 * g_);
  ASSERT_OK(arena_->Commit(kv));
  ASSERT_OK_AND_ASSIGN(
      const RegistrationId id,
      arena_->registrations().Add({.holder = "nic 0",
                                   .kind = HolderKind::kRdma,
                                   .spans = {kv},
                                   .before_unmap = [](const SpanInfo&) { return absl::OkStatus(); },
                                   .after_map = [](const SpanInfo&) { return absl::OkStatus(); }}));
  const absl::Status held = arena_->Uncommit(kv, 0, Soon()).status();
  EXPECT_THAT(held, IsErrorKind(ErrorKind::kHeld));
  EXPECT_NE(held.message().find("nic 0"), absl::string_view::npos);
  EXPECT_EQ(own_bytes(), 4 * g_);
  ASSERT_OK(arena_->registrations().Remove(id));
  EXPECT_OK(arena_->Uncommit(kv, 0, Soon()));
}

// Field case 50, for shrinking: running work and an admitted replay keep every page; a missed
// deadline changes nothing.
TEST_F(ArenaUncommitTest, WaitsForRunningWorkAndAdmittedReplays) {
  const SpanId kv = Add("kv", 4 * g_);
  ASSERT_OK(arena_->Commit(kv));
  arena_->gate().RegisterStream(stream_.get());
  {
    Gate hold(*device_, *stream_);
    ASSERT_OK(hold.status());
    ASSERT_OK(device_->Fill(*stream_, arena_->range(kv).base, 0x77, 4 * g_));
    hold.WaitUntilReached();
    EXPECT_THAT(arena_->Uncommit(kv, 0, In(std::chrono::milliseconds(20))),
                IsErrorKind(ErrorKind::kDeadlineExceeded));
    EXPECT_EQ(own_bytes(), 4 * g_);
    EXPECT_FALSE(arena_->gate().closed());
  }
  {
    auto pass = arena_->gate().Enter();
    ASSERT_OK(pass);
    std::optional<AdmissionGate::Pass> inside(*std::move(pass));
    EXPECT_THAT(arena_->Uncommit(kv, 0, In(std::chrono::milliseconds(10))),
                IsErrorKind(ErrorKind::kDeadlineExceeded));
    EXPECT_EQ(arena_->committed_bytes(kv), 4 * g_);
  }
  EXPECT_OK(arena_->Uncommit(kv, 0, Soon()));
  EXPECT_OK(device_->Synchronize(*stream_));  // no sticky error
  arena_->gate().UnregisterStream(stream_.get());
}

// Kept contents: a piece that was backed up, given back and committed anew is new, asleep or awake.
TEST_F(ArenaUncommitTest, ANewPieceAtAnOldAddressHasNothingOfTheOldBackup) {
  const SpanId state = Add("state", 4 * g_, "state", Role::kMutable);
  ASSERT_OK(arena_->Commit(state));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Residency> residency, Residency::Create(*arena_));
  const AddressRange range = arena_->range(state);
  const Bytes written = Pattern(range.bytes, 7);
  WriteBytes(*device_, *stream_, range.base, written);
  ASSERT_OK(residency->Sleep({"state"}, Soon()));
  ASSERT_OK(residency->Wake({"state"}));
  ASSERT_OK(arena_->Uncommit(state, 2 * g_, Soon()));
  ASSERT_OK(residency->Sleep({"state"}, Soon()));
  ASSERT_OK(residency->Wake({"state"}));
  EXPECT_EQ(own_bytes(), 2 * g_);
  ASSERT_OK(arena_->Commit(state));
  ASSERT_OK(residency->Sleep({"state"}, Soon()));
  EXPECT_EQ(own_bytes(), 0u);
  ASSERT_OK(residency->Wake({"state"}));
  Bytes expected(written.begin(), written.begin() + static_cast<std::ptrdiff_t>(2 * g_));
  expected.resize(range.bytes, 0);
  EXPECT_EQ(ReadBytes(*device_, *stream_, range), expected);
}

// Whichever driver call fails, the span is cut, nothing leaks, and the next commit works.
TEST_F(ArenaUncommitTest, PagesTheDriverKeepsGoLater) {
  for (const Call call : {Call::kUnmap, Call::kReleaseChunk}) {
    const SpanId kv = Add("kv" + std::to_string(static_cast<int>(call)), 4 * g_);
    ASSERT_OK(arena_->Commit(kv));
    device_->calls().FailAt(1, {call});
    EXPECT_OK(arena_->Uncommit(kv, 0, Soon()));  // each piece is tried twice
    EXPECT_TRUE(device_->calls().Disarm());
    EXPECT_EQ(arena_->committed_bytes(kv), 0u);
    ASSERT_OK(arena_->Commit(kv));
    ASSERT_OK(arena_->Free(kv, Soon()));
  }
  stream_.reset();
  arena_.reset();
  EXPECT_TRUE(device_->calls().Balanced());
}

TEST_F(ArenaUncommitTest, PartsOfATagAreCommittedEachByItself) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Arena> arena,
                       Arena::Create(*device_, {.name = "parts",
                                                .groups = {{"ws", Role::kScratch, 8 * g_, g_},
                                                           {.tag = "ws",
                                                            .role = Role::kScratch,
                                                            .extent_bytes = 8 * g_,
                                                            .chunk_bytes = g_,
                                                            .part = "lane1"}}}));
  const auto add = [&](const char* name, const char* part) {
    return arena->Reserve(
        {.name = name, .tag = "ws", .role = Role::kScratch, .bytes = 8 * g_, .part = part});
  };
  ASSERT_OK_AND_ASSIGN(const SpanId a, add("a", ""));
  ASSERT_OK_AND_ASSIGN(const SpanId b, add("b", "lane1"));
  EXPECT_THAT(add("c", "lane2"), IsErrorKind(ErrorKind::kNotFound));
  ASSERT_OK(arena->CommitTogether({{a, 2 * g_}, {b, g_}}));
  EXPECT_EQ(own_bytes(), 3 * g_);
  EXPECT_EQ(arena->committed_bytes(a), 2 * g_);
  EXPECT_EQ(arena->committed_bytes(b), g_);
  // All or none: the second is refused, and the first stays as it was.
  EXPECT_THAT(arena->CommitTogether({{a, 4 * g_}, {b, 9 * g_}}),
              IsErrorKind(ErrorKind::kInvalidArgument));
  device_->calls().FailAt(3, {Call::kCreateChunk});
  EXPECT_THAT(arena->CommitTogether({{a, 4 * g_}, {b, 3 * g_}}), IsErrorKind(ErrorKind::kDriver));
  EXPECT_TRUE(device_->calls().Disarm());
  EXPECT_EQ(own_bytes(), 3 * g_);
  // They sleep together.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Residency> residency, Residency::Create(*arena));
  ASSERT_OK(residency->Sleep({"ws"}, Soon()));
  EXPECT_EQ(own_bytes(), 0u);
  ASSERT_OK(residency->Wake({"ws"}));
  EXPECT_EQ(own_bytes(), 3 * g_);
  ASSERT_EQ(arena->bytes_by_tag().size(), 1u);
  EXPECT_EQ(arena->bytes_by_tag().front().committed_bytes, 3 * g_);
}

}  // namespace
}  // namespace holdfast
