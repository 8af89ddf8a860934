// Verifies that the reserve for kernels' stacks goes with its last holder and comes back with the
// first.
#include <memory>

#include "gtest/gtest.h"
#include "tests/device/device_fixture.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kReserve = 6 * kMiB;
constexpr std::uint64_t kHostChunk = 2 * kMiB;

std::unique_ptr<Device> HostWithReserve(std::uint64_t capacity = 64 * kMiB) {
  return TestHostDevice(
      {.host_capacity_bytes = capacity, .host_driver = {.local_memory_bytes = kReserve}});
}

TEST(LocalMemoryTest, GoesWithTheLastHolderAndComesBackWithTheFirst) {
  const auto device = HostWithReserve();
  const std::uint64_t whole = device->Memory()->free_bytes;
  EXPECT_EQ(device->Memory()->process_bytes, kReserve);
  ASSERT_OK(device->HoldLocalMemory());
  ASSERT_OK(device->HoldLocalMemory());
  ASSERT_OK(device->DropLocalMemory());
  EXPECT_EQ(device->Memory()->free_bytes, whole);
  ASSERT_OK(device->DropLocalMemory());
  EXPECT_EQ(device->Memory()->free_bytes, whole + kReserve);
  EXPECT_EQ(device->Memory()->process_bytes, 0u);
  ASSERT_OK(device->HoldLocalMemory());
  EXPECT_EQ(device->Memory()->free_bytes, whole);
  ASSERT_OK(device->DropLocalMemory());
  EXPECT_THAT(device->DropLocalMemory(), IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST(LocalMemoryTest, IsNotHeldWhereItsMemoryIsGone) {
  // Verifies: the memory somebody else took meanwhile is an error now, not at the next launch; a
  // retry works.
  const auto device = HostWithReserve(kReserve + kHostChunk);
  ASSERT_OK(device->HoldLocalMemory());
  ASSERT_OK(device->DropLocalMemory());
  ASSERT_OK_AND_ASSIGN(const ChunkHandle taken, device->CreateChunk(2 * kHostChunk));
  const absl::Status held = device->HoldLocalMemory();
  EXPECT_THAT(held, IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_EQ(GetErrorInfo(held)->need, kReserve);
  EXPECT_THAT(device->DropLocalMemory(), IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK(device->ReleaseChunk(taken));
  EXPECT_OK(device->HoldLocalMemory());
  EXPECT_EQ(device->Memory()->process_bytes, kReserve);
}

TEST(LocalMemoryTest, AFailedCallLeavesThingsAsTheyWere) {
  const auto device = HostWithReserve();
  ASSERT_OK(device->HoldLocalMemory());
  device->calls().FailAt(1, {Call::kReleaseLocalMemory});
  EXPECT_FALSE(device->DropLocalMemory().ok());
  EXPECT_TRUE(device->calls().Disarm());
  EXPECT_EQ(device->Memory()->process_bytes, kReserve);
  ASSERT_OK(device->DropLocalMemory());  // it was still held
  device->calls().FailAt(1, {Call::kRestoreLocalMemory});
  EXPECT_FALSE(device->HoldLocalMemory().ok());
  EXPECT_TRUE(device->calls().Disarm());
  EXPECT_EQ(device->Memory()->process_bytes, 0u);
  EXPECT_OK(device->HoldLocalMemory());
}

using LocalMemoryConformance = DeviceTest;

TEST_F(LocalMemoryConformance, KernelsRunBeforeAndAfterItWasGone) {
  MappedMemory memory(*device_, granularity());
  Upload<std::uint32_t>(memory.base(), {1, 2, 3});
  ASSERT_OK(device_->ReleaseLocalMemory());
  ASSERT_OK(device_->ReleaseLocalMemory());
  EXPECT_EQ(device_->calls().succeeded(Call::kReleaseLocalMemory), 1u);
  const std::uint64_t without = device_->Memory()->process_bytes;
  ASSERT_OK(device_->RestoreLocalMemory());
  EXPECT_GE(device_->Memory()->process_bytes, without);
  EXPECT_EQ(Hash(memory.range()).size(), (granularity() + kHashLeafBytes - 1) / kHashLeafBytes);
  EXPECT_EQ(Download<std::uint32_t>(memory.base(), 3), (std::vector<std::uint32_t>{1, 2, 3}));
}

}  // namespace
}  // namespace holdfast
