// Verifies that backups are exact, reused, capped before anything is allocated, and given back.
#include "allocator/backing.h"

#include "device/bytes.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

AddressRange At(std::uint64_t mib, std::uint64_t bytes) {
  return {DeviceAddress{mib * kMiB}, bytes};
}

TEST(BackingTest, RoomsAreExactAndReused) {
  auto device = TestDevice();
  Backing backing(*device, UINT64_MAX);
  ASSERT_OK(backing.Prepare({kMiB}, 1000));
  const std::byte* first = backing.Find({kMiB})->bytes.data();
  ASSERT_OK(backing.Prepare({kMiB}, 1000));
  EXPECT_EQ(backing.Find({kMiB})->bytes.data(), first);
  EXPECT_EQ(backing.held_bytes(), 1000u);
  EXPECT_EQ(device->calls().succeeded(Call::kAllocateHost), 1u);
  EXPECT_EQ(backing.Find({2 * kMiB}), nullptr);
  backing.Drop({kMiB});
  EXPECT_EQ(backing.held_bytes(), 0u);
  EXPECT_TRUE(device->calls().Balanced());
}

TEST(BackingTest, CapIsJudgedBeforeAnythingIsAllocated) {
  auto device = TestDevice();
  Backing backing(*device, 2500);
  const absl::Status refused = backing.PrepareAll({At(1, 1000), At(2, 1000), At(3, 1000)});
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfHostMemory));
  EXPECT_EQ(GetErrorInfo(refused)->need, 3000u);
  EXPECT_EQ(GetErrorInfo(refused)->have, 2500u);
  EXPECT_EQ(device->calls().succeeded(Call::kAllocateHost), 0u);
  EXPECT_OK(backing.PrepareAll({At(1, 1000), At(2, 1000)}));
  EXPECT_THAT(backing.Prepare({3 * kMiB}, 1000), IsErrorKind(ErrorKind::kOutOfHostMemory));
}

// Rooms without contents make way for others; rooms with contents do not.
TEST(BackingTest, EmptyRoomsMakeWay) {
  auto device = TestDevice();
  Backing backing(*device, 2000);
  ASSERT_OK(backing.PrepareAll({At(1, 1000), At(2, 1000)}));
  backing.Find({kMiB})->valid = true;
  EXPECT_OK(backing.PrepareAll({At(3, 1000)}));
  EXPECT_NE(backing.Find({kMiB}), nullptr);
  EXPECT_EQ(backing.Find({2 * kMiB}), nullptr);
  backing.Find({3 * kMiB})->valid = true;
  EXPECT_THAT(backing.PrepareAll({At(4, 1000)}), IsErrorKind(ErrorKind::kOutOfHostMemory));
  backing.Find({3 * kMiB})->valid = false;
  backing.Trim();
  EXPECT_EQ(backing.held_bytes(), 1000u);
}

}  // namespace
}  // namespace holdfast
