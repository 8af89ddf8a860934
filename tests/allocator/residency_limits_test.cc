// Verifies the refusals: no room on the device, no room on the host.
#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

// Somebody else takes the memory while we sleep: wake says how much is missing and stays retryable.
TEST(ResidencyLimitsTest, WakeRefusesWhileTheMemoryIsTaken) {
  ResidencyRig rig(
      {.host_only = true, .device = {.host_capacity_bytes = 24 * kMiB}, .residency = {}});
  const std::uint64_t g = rig.device->info().granularity;
  const ResidencyRig::State awake = rig.Look();
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle other, rig.device->CreateChunk(8 * g));
  const ResidencyRig::State asleep = rig.Look();
  const auto refused = rig.residency->Wake(AllTags());
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_EQ(GetErrorInfo(refused.status())->need, 7 * g);
  EXPECT_EQ(GetErrorInfo(refused.status())->have, 4 * g);
  EXPECT_EQ(rig.Look(), asleep);
  // A tag that fits wakes meanwhile.
  ASSERT_OK(rig.residency->Wake({"state"}));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
  EXPECT_THAT(rig.residency->Wake(AllTags()), IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_FALSE(rig.residency->asleep("state"));
  ASSERT_OK(rig.device->ReleaseChunk(other));
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.Look(), awake);
}

// A host cap below the need is found before anything moves.
TEST(ResidencyLimitsTest, HostCapRefusesBeforeAnythingMoves) {
  auto probe = TestDevice();
  const std::uint64_t g = probe->info().granularity;
  const std::uint64_t need = ResidencyRig().WeightBytes() + g;
  ResidencyRig rig({.host_only = false, .device = {}, .residency = {.host_cap_bytes = need - 1}});
  const ResidencyRig::State before = rig.Look();
  const std::uint64_t copies = rig.device->calls().succeeded(Call::kCopy);
  const auto refused = rig.residency->Sleep(AllTags(), Soon());
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfHostMemory));
  EXPECT_EQ(GetErrorInfo(refused.status())->need, need);
  EXPECT_EQ(GetErrorInfo(refused.status())->have, need - 1);
  EXPECT_EQ(rig.device->calls().succeeded(Call::kCopy), copies);
  EXPECT_EQ(rig.residency->backing_bytes(), 0u);
  EXPECT_EQ(rig.Look(), before);
  // What fits, and what needs no backup, still sleeps.
  EXPECT_OK(rig.residency->Sleep({"weights", "kv_cache", "workspace"}, Soon()));
  EXPECT_THAT(rig.residency->Sleep({"state"}, Soon()), IsErrorKind(ErrorKind::kOutOfHostMemory));
  EXPECT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.Look(), before);
}

// Without verification and comparison nothing is hashed, and the cycle is the same.
TEST(ResidencyLimitsTest, VerificationCanBeOff) {
  ResidencyRig rig({.host_only = false,
                    .device = {},
                    .residency = {.verify = false, .detect_unchanged = false}});
  const std::uint64_t hashes = rig.device->calls().succeeded(Call::kHash);
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.device->calls().succeeded(Call::kHash), hashes);
  EXPECT_EQ(rig.Read("w0"), rig.Expected("w0", 1));
}

}  // namespace
}  // namespace holdfast
