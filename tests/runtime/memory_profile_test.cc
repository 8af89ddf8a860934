// Verifies the profile's life cycle: what it counts, that the lease lasts until the closing
// measurement, and that only this process's bytes are in the figures.
#include "runtime/memory_profile.h"

#include <type_traits>

#include "device/bytes.h"
#include "device/host/host_device.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kNeighbour = 96 * kMiB;

// A lease that knows when it ended.
class CountedLease : public ProfileLease {
 public:
  CountedLease(bool& alive, absl::Status at_release = absl::OkStatus())
      : alive_(alive), at_release_(std::move(at_release)) {
    alive_ = true;
  }
  ~CountedLease() override { alive_ = false; }
  std::uint64_t bytes() const override { return 4 * kMiB; }
  absl::Status Release() override {
    alive_ = false;
    return at_release_;
  }

 private:
  bool& alive_;
  absl::Status at_release_;
};

// The order of steps is in the types: what would release early does not compile.
template <typename Profile>
concept Releasable = requires(Profile profile) {
  ClosedProfile::Release(std::move(profile));
};
template <typename Profile>
concept Closable = requires(Profile profile) {
  ClosedProfile::Close(std::move(profile));
};
static_assert(Releasable<ClosedProfile>);
static_assert(!Releasable<OpenProfile> && !Releasable<HeldProfile>);
static_assert(Closable<HeldProfile>);
static_assert(!Closable<OpenProfile> && !Closable<ClosedProfile>);
// No second holder of the lease, and no profile that is closed without having been held.
static_assert(!std::is_copy_constructible_v<HeldProfile>);
static_assert(!std::is_copy_constructible_v<ClosedProfile>);
static_assert(!std::is_default_constructible_v<HeldProfile>);
static_assert(!std::is_default_constructible_v<ClosedProfile>);
static_assert(!std::is_constructible_v<ClosedProfile, HeldProfile>);

TEST(MemoryProfile, TheLeaseOutlivesTheClosingMeasurement) {
  const auto device = TestHostDevice({.host_capacity_bytes = 256 * kMiB});
  bool alive = false;
  ASSERT_OK_AND_ASSIGN(OpenProfile open, OpenProfile::Begin(*device));
  ASSERT_OK_AND_ASSIGN(HeldProfile held,
                       HeldProfile::Hold(std::move(open), std::make_unique<CountedLease>(alive)));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device->CreateChunk(4 * kMiB));
  ASSERT_OK_AND_ASSIGN(ClosedProfile closed, ClosedProfile::Close(std::move(held)));
  EXPECT_TRUE(alive);
  ASSERT_OK_AND_ASSIGN(const MemoryProfile profile, ClosedProfile::Release(std::move(closed)));
  EXPECT_FALSE(alive);
  EXPECT_EQ(profile.lease_bytes, 4 * kMiB);
  EXPECT_EQ(profile.grown_bytes(), static_cast<std::int64_t>(4 * kMiB));
  EXPECT_EQ(profile.closing.chunk_bytes, 4 * kMiB);
  ASSERT_OK(device->ReleaseChunk(chunk));
}

TEST(MemoryProfile, AnAbandonedProfileEndsItsLease) {
  const auto device = TestHostDevice();
  bool alive = false;
  {
    ASSERT_OK_AND_ASSIGN(OpenProfile open, OpenProfile::Begin(*device));
    ASSERT_OK_AND_ASSIGN(const HeldProfile held,
                         HeldProfile::Hold(std::move(open), std::make_unique<CountedLease>(alive)));
    EXPECT_TRUE(alive);
  }
  EXPECT_FALSE(alive);
}

TEST(MemoryProfile, RefusesNoLeaseASecondReleaseAndALeaseThatCannotEnd) {
  const auto device = TestHostDevice();
  ASSERT_OK_AND_ASSIGN(OpenProfile open, OpenProfile::Begin(*device));
  EXPECT_THAT(HeldProfile::Hold(open, nullptr), IsErrorKind(ErrorKind::kInvalidArgument));
  bool alive = false;
  ASSERT_OK_AND_ASSIGN(HeldProfile held,
                       HeldProfile::Hold(open, std::make_unique<CountedLease>(alive)));
  ASSERT_OK_AND_ASSIGN(ClosedProfile closed, ClosedProfile::Close(std::move(held)));
  ASSERT_OK(ClosedProfile::Release(std::move(closed)));
  EXPECT_THAT(ClosedProfile::Release(std::move(closed)), IsErrorKind(ErrorKind::kClosed));

  const absl::Status stuck = MakeError({.kind = ErrorKind::kDriver, .object = "lease"}, "stuck");
  ASSERT_OK_AND_ASSIGN(
      HeldProfile other,
      HeldProfile::Hold(std::move(open), std::make_unique<CountedLease>(alive, stuck)));
  ASSERT_OK_AND_ASSIGN(ClosedProfile again, ClosedProfile::Close(std::move(other)));
  EXPECT_THAT(ClosedProfile::Release(std::move(again)), IsErrorKind(ErrorKind::kDriver));
  EXPECT_FALSE(alive);
}

TEST(MemoryProfile, TransientPeaksAreSeenAndNamed) {
  const auto device = TestHostDevice({.host_capacity_bytes = 256 * kMiB});
  bool alive = false;
  ASSERT_OK_AND_ASSIGN(OpenProfile open, OpenProfile::Begin(*device));
  ASSERT_OK_AND_ASSIGN(HeldProfile held,
                       HeldProfile::Hold(std::move(open), std::make_unique<CountedLease>(alive)));
  ASSERT_OK(held.Observe("prefill/32"));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device->CreateChunk(32 * kMiB));
  ASSERT_OK(held.Observe("decode/8"));
  ASSERT_OK(device->ReleaseChunk(chunk));
  ASSERT_OK(held.Observe("decode/1"));
  ASSERT_OK_AND_ASSIGN(ClosedProfile closed, ClosedProfile::Close(std::move(held)));
  ASSERT_OK_AND_ASSIGN(const MemoryProfile profile, ClosedProfile::Release(std::move(closed)));
  EXPECT_EQ(profile.observations, 3u);
  EXPECT_EQ(profile.transient_bytes(), 32 * kMiB);
  EXPECT_EQ(profile.highest_at, "decode/8");
  EXPECT_EQ(profile.grown_bytes(), 0);
}

// What a profile says of a process that takes 8 MiB while its neighbour takes, or gives back.
absl::StatusOr<MemoryProfile> ProfileBeside(Counting counting, bool gives_back) {
  const auto device = TestHostDevice(
      {.host_capacity_bytes = 512 * kMiB, .host_driver = {.context_bytes = 20 * kMiB}});
  if (gives_back) HOLDFAST_RETURN_IF_ERROR(TakeForNeighbour(*device, kNeighbour));
  bool alive = false;
  HOLDFAST_ASSIGN_OR_RETURN(OpenProfile open, OpenProfile::Begin(*device, counting));
  HOLDFAST_ASSIGN_OR_RETURN(
      HeldProfile held, HeldProfile::Hold(std::move(open), std::make_unique<CountedLease>(alive)));
  HOLDFAST_ASSIGN_OR_RETURN(const ChunkHandle chunk, device->CreateChunk(8 * kMiB));
  HOLDFAST_RETURN_IF_ERROR(gives_back ? GiveFromNeighbour(*device, kNeighbour)
                                      : TakeForNeighbour(*device, kNeighbour));
  HOLDFAST_ASSIGN_OR_RETURN(ClosedProfile closed, ClosedProfile::Close(std::move(held)));
  HOLDFAST_RETURN_IF_ERROR(device->ReleaseChunk(chunk));
  return ClosedProfile::Release(std::move(closed));
}

TEST(MemoryProfile, ANeighbourIsInNoFigureOfOurs) {
  for (const bool gives_back : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const MemoryProfile own, ProfileBeside(Counting::kOwn, gives_back));
    EXPECT_EQ(own.grown_bytes(), static_cast<std::int64_t>(8 * kMiB));
    EXPECT_EQ(own.opening.held_bytes, 20 * kMiB);
    // The negative control: counted by what is free, the neighbour's bytes become ours.
    ASSERT_OK_AND_ASSIGN(const MemoryProfile all, ProfileBeside(Counting::kDevice, gives_back));
    EXPECT_FALSE(all.opening.own);
    EXPECT_EQ(all.grown_bytes(), static_cast<std::int64_t>(8 * kMiB) +
                                     (gives_back ? -1 : 1) * static_cast<std::int64_t>(kNeighbour));
  }
}

TEST(MemoryProfile, TheHostsNeighbourTakesOnlyWhatIsThere) {
  const auto device = TestHostDevice({.host_capacity_bytes = 64 * kMiB});
  EXPECT_THAT(TakeForNeighbour(*device, 65 * kMiB), IsErrorKind(ErrorKind::kOutOfMemory));
  ASSERT_OK(TakeForNeighbour(*device, 60 * kMiB));
  EXPECT_EQ(device->Memory()->free_bytes, 4 * kMiB);
  EXPECT_EQ(device->Memory()->process_bytes, 0u);
  EXPECT_THAT(device->CreateChunk(6 * kMiB), IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_THAT(GiveFromNeighbour(*device, 61 * kMiB), IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK(GiveFromNeighbour(*device, 60 * kMiB));
}

TEST(MemoryProfile, ALeaseOnSpansKeepsTheirPages) {
  const auto device = TestDevice();
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Arena> arena,
      Arena::Create(
          *device,
          {.groups = {{.tag = "workspace", .role = Role::kScratch, .extent_bytes = 8 * kMiB}},
           .candidate_bases = {}}));
  ASSERT_OK_AND_ASSIGN(const SpanId span, arena->Reserve({.name = "scratch",
                                                          .tag = "workspace",
                                                          .role = Role::kScratch,
                                                          .bytes = 6 * kMiB,
                                                          .owner = "test"}));
  EXPECT_THAT(LeaseSpans(*arena, "profile", {span}), IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK(arena->Commit(span));
  ASSERT_OK_AND_ASSIGN(const auto lease, LeaseSpans(*arena, "profile", {span}));
  EXPECT_EQ(lease->bytes(), 6 * kMiB);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  EXPECT_THAT(arena->Free(span, deadline), IsErrorKind(ErrorKind::kHeld));
  ASSERT_OK(lease->Release());
  EXPECT_THAT(arena->Free(span, deadline), IsOk());
}

}  // namespace
}  // namespace holdfast
