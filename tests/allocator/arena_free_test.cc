// Verifies that a freed span waits for what uses it, gives back what it alone had, and is never
// mistaken for another.
#include <optional>
#include <thread>

#include "gtest/gtest.h"
#include "testing/gate.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

class ArenaFreeTest : public testing::Test {
 protected:
  ArenaFreeTest() {
    auto arena = Arena::Create(*device_,
                               {.name = "free", .groups = {{"state", Role::kMutable, 8 * g_, g_}}});
    EXPECT_OK(arena);
    arena_ = *std::move(arena);
    auto stream = device_->CreateStream("test");
    EXPECT_OK(stream);
    stream_ = *std::move(stream);
  }
  SpanId Add(const std::string& name, std::uint64_t bytes) {
    auto id = arena_->Reserve({.name = name, .tag = "state", .bytes = bytes});
    EXPECT_OK(id);
    return id.ok() ? *id : SpanId{};
  }
  std::uint64_t own_bytes() { return device_->Memory()->own_bytes; }

  std::unique_ptr<Device> device_ = TestDevice();
  const std::uint64_t g_ = device_->info().granularity;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(ArenaFreeTest, TheLastSpanGivesItsChunksBackAndItsNameButNotItsAddress) {
  const SpanId a = Add("a", g_ / 2);
  const SpanId b = Add("b", 3 * g_);
  ASSERT_OK(arena_->CommitTag("state"));
  const AddressRange old = arena_->range(b);
  EXPECT_EQ(own_bytes(), 4 * g_);
  const std::uint64_t epoch = arena_->epoch();
  ASSERT_OK(arena_->Free(b, Soon()));
  // The first chunk holds a, too.
  EXPECT_EQ(own_bytes(), g_);
  EXPECT_NE(arena_->epoch(), epoch);
  EXPECT_EQ(arena_->Find("b"), std::nullopt);
  EXPECT_FALSE(arena_->Locate(old.base + g_));
  EXPECT_EQ(arena_->range(b), AddressRange{});
  EXPECT_THAT(arena_->Commit(b), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(arena_->Free(b, Soon()), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(arena_->bytes_by_tag().front().spans, 1u);

  const SpanId again = Add("b", g_);
  EXPECT_NE(again, b);
  EXPECT_GE(arena_->range(again).base, old.end());
  // The hole gets no name, but commits go on to extend the prefix.
  ASSERT_OK(arena_->Commit(again));
  EXPECT_TRUE(AllBytesAre(ReadBytes(*device_, *stream_, arena_->range(again)), 0));
  ASSERT_OK(arena_->Free(again, Soon()));
  ASSERT_OK(arena_->Free(a, Soon()));
  EXPECT_EQ(own_bytes(), 0u);
}

TEST_F(ArenaFreeTest, ASpanBeforeALiveOneKeepsItsPages) {
  const SpanId a = Add("a", 2 * g_);
  const SpanId b = Add("b", g_);
  ASSERT_OK(arena_->CommitTag("state"));
  WriteBytes(*device_, *stream_, arena_->range(b).base, Pattern(g_, 3));
  ASSERT_OK(arena_->Free(a, Soon()));
  EXPECT_EQ(own_bytes(), 3 * g_);
  EXPECT_EQ(ReadBytes(*device_, *stream_, arena_->range(b)), Pattern(g_, 3));
  EXPECT_EQ(arena_->bytes_by_tag().front().logical_bytes, g_);
  ASSERT_OK(arena_->Free(b, Soon()));  // now nothing keeps any of them
  EXPECT_EQ(own_bytes(), 0u);
}

// Field case 50: a held kernel and a copy on a second stream use the span; freeing it waits, gives
// up at its deadline with nothing changed, and what was copied is right.
TEST_F(ArenaFreeTest, WaitsForKernelsAndSideCopiesThatUseTheSpan) {
  const SpanId x = Add("x", g_);
  ASSERT_OK(arena_->CommitTag("state"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Stream> side, device_->CreateStream("side"));
  arena_->gate().RegisterStream(stream_.get());
  arena_->gate().RegisterStream(side.get());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Event> filled, device_->CreateEvent());
  ASSERT_OK_AND_ASSIGN(const HostBuffer out, device_->AllocateHost(g_));
  {
    Gate hold(*device_, *stream_);
    ASSERT_OK(hold.status());
    ASSERT_OK(device_->Fill(*stream_, arena_->range(x).base, 0x77, g_));
    ASSERT_OK(device_->Record(*filled, *stream_));
    ASSERT_OK(device_->Wait(*side, *filled));
    ASSERT_OK(device_->CopyToHost(*side, out.data(), arena_->range(x).base, g_));
    hold.WaitUntilReached();
    EXPECT_THAT(arena_->Free(x, In(std::chrono::milliseconds(30))),
                IsErrorKind(ErrorKind::kDeadlineExceeded));
    EXPECT_EQ(arena_->Find("x"), x);
    EXPECT_EQ(own_bytes(), g_);
    EXPECT_FALSE(arena_->gate().closed());
  }
  ASSERT_OK(arena_->Free(x, Soon()));
  EXPECT_EQ(own_bytes(), 0u);
  // Whatever Free returned after had run before the page went.
  for (std::uint64_t i = 0; i < g_; i += 4096) ASSERT_EQ(out.data()[i], std::byte{0x77});
  EXPECT_OK(device_->Synchronize(*side));
  EXPECT_OK(device_->Synchronize(*stream_));  // no sticky error
  arena_->gate().UnregisterStream(side.get());
  arena_->gate().UnregisterStream(stream_.get());
}

TEST_F(ArenaFreeTest, WaitsForAnEntrant) {
  const SpanId x = Add("x", g_);
  ASSERT_OK(arena_->CommitTag("state"));
  auto pass = arena_->gate().Enter();
  ASSERT_OK(pass);
  std::optional<AdmissionGate::Pass> inside(*std::move(pass));
  EXPECT_THAT(arena_->Free(x, In(std::chrono::milliseconds(10))),
              IsErrorKind(ErrorKind::kDeadlineExceeded));
  inside.reset();
  EXPECT_OK(arena_->Free(x, Soon()));
}

TEST_F(ArenaFreeTest, RefusesWhatIsHeldOrLocked) {
  const SpanId x = Add("x", g_);
  ASSERT_OK(arena_->CommitTag("state"));
  ASSERT_OK_AND_ASSIGN(
      const RegistrationId id,
      arena_->registrations().Add({.holder = "ring 3",
                                   .kind = HolderKind::kCommunicator,
                                   .spans = {x},
                                   .before_unmap = [](const SpanInfo&) { return absl::OkStatus(); },
                                   .after_map = [](const SpanInfo&) { return absl::OkStatus(); }}));
  const absl::Status held = arena_->Free(x, Soon());
  EXPECT_THAT(held, IsErrorKind(ErrorKind::kHeld));
  EXPECT_NE(held.message().find("ring 3"), absl::string_view::npos);
  ASSERT_OK(arena_->registrations().Remove(id));
  arena_->Lock();
  EXPECT_THAT(arena_->Free(x, Soon()), IsErrorKind(ErrorKind::kLocked));
  EXPECT_THAT(arena_->Free(SpanId{}, Soon()), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(own_bytes(), g_);
}

TEST_F(ArenaFreeTest, PagesThatCannotBeGivenBackGoLater) {
  const SpanId x = Add("x", 2 * g_);
  ASSERT_OK(arena_->CommitTag("state"));
  // The call tries each piece twice, so one failure does not show.
  device_->calls().FailAt(1, {Call::kUnmap});
  EXPECT_OK(arena_->Free(x, Soon()));
  EXPECT_TRUE(device_->calls().Disarm());
  EXPECT_EQ(own_bytes(), 0u);
  arena_.reset();
  stream_.reset();
  EXPECT_TRUE(device_->calls().Balanced());
}

// A sealed group whose last span is gone still counts as whole.
TEST(ArenaFreeSealTest, ACommittedGroupWithAHoleAtItsEndIsSealed) {
  const std::unique_ptr<Device> device = TestDevice();
  const std::uint64_t g = device->info().granularity;
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Arena> arena,
      Arena::Create(*device, {.groups = {{"weights", Role::kImmutable, 4 * g, g}}}));
  const auto add = [&](const char* name) {
    return arena->Reserve({.name = name, .tag = "weights", .role = Role::kImmutable, .bytes = g});
  };
  ASSERT_OK_AND_ASSIGN(const SpanId w, add("w"));
  ASSERT_OK_AND_ASSIGN(const SpanId gone, add("gone"));
  ASSERT_OK(arena->CommitTag("weights"));
  ASSERT_OK(arena->Free(gone, Soon()));
  ASSERT_OK(arena->CommitTag("weights"));
  EXPECT_EQ(device->Memory()->own_bytes, g);
  EXPECT_OK(arena->Seal("weights"));
  EXPECT_OK(arena->Free(w, Soon()));
}

// Field case 9: a region is freed while asleep, sleep and wake are repeated, each in every state:
// documented no-ops and refusals; counts balance, contents return.
TEST(ArenaFreeWhileAsleepTest, RepeatsAndFreesWhileAsleepChangeNothing) {
  const std::unique_ptr<Device> device = TestDevice();
  const std::uint64_t g = device->info().granularity;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Arena> arena,
                         Arena::Create(*device, {.groups = {{"state", Role::kMutable, 2 * g, g},
                                                            {"kv", Role::kCache, 2 * g, g}}}));
    ASSERT_OK_AND_ASSIGN(const SpanId s, arena->Reserve({.name = "s", .tag = "state", .bytes = g}));
    ASSERT_OK_AND_ASSIGN(
        const SpanId k,
        arena->Reserve({.name = "k", .tag = "kv", .role = Role::kCache, .bytes = g}));
    ASSERT_OK(arena->CommitTag("state"));
    ASSERT_OK(arena->CommitTag("kv"));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Stream> stream, device->CreateStream("test"));
    WriteBytes(*device, *stream, arena->range(s).base, Pattern(g, 9));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Residency> residency, Residency::Create(*arena));
    ASSERT_OK(residency->Sleep({"state", "kv"}, Soon()));
    const std::uint64_t unmaps = device->calls().succeeded(Call::kUnmap);
    ASSERT_OK_AND_ASSIGN(const TransitionReport second, residency->Sleep({"state", "kv"}, Soon()));
    EXPECT_TRUE(second.tags.empty());
    for (const SpanId span : {s, k}) {
      EXPECT_THAT(arena->Free(span, Soon()), IsErrorKind(ErrorKind::kAsleep));
    }
    EXPECT_EQ(device->calls().succeeded(Call::kUnmap), unmaps);
    ASSERT_OK(residency->Wake({"state", "kv"}));
    ASSERT_OK_AND_ASSIGN(const TransitionReport again, residency->Wake({"state", "kv"}));
    EXPECT_TRUE(again.tags.empty());
    EXPECT_EQ(ReadBytes(*device, *stream, arena->range(s)), Pattern(g, 9));
    ASSERT_OK(arena->Free(k, Soon()));
    // A tag without pages sleeps and wakes like any other.
    ASSERT_OK(residency->Sleep({"state", "kv"}, Soon()));
    ASSERT_OK(residency->Wake({"state", "kv"}));
    EXPECT_EQ(device->Memory()->own_bytes, g);
    EXPECT_EQ(ReadBytes(*device, *stream, arena->range(s)), Pattern(g, 9));
  }
  EXPECT_TRUE(device->calls().Balanced());
}

}  // namespace
}  // namespace holdfast
