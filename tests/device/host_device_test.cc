// What only the host device can show: windows closed while idle, a lost device that is not a dead
// process, memory that runs out and comes back.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "testing/gate.h"
#include "tests/device/device_fixture.h"
#include "tests/device/test_ops.h"

namespace holdfast {
namespace {

class HostDeviceTest : public DeviceTest {
 protected:
  HostDeviceTest() : DeviceTest(TestHostDevice({.host_capacity_bytes = 64 * kMiB})) {}

  absl::Status Poke(DeviceAddress target, std::uint64_t value) {
    return Launch(*device_, *stream_, PokeOp(), ShapeFor(1),
                  PokeParams{target.As<std::uint64_t>(), value});
  }
};

using HostDeviceDeathTest = HostDeviceTest;

// A host function that follows a device pointer.
void ReadWord(void* word) { static_cast<void>(*static_cast<volatile std::uint64_t*>(word)); }

TEST_F(HostDeviceDeathTest, DereferencingADevicePointerOnTheHostFaults) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  MappedMemory memory(*device_, granularity());
  ASSERT_OK(Poke(memory.base(), 1));
  ASSERT_OK(device_->Synchronize(*stream_));
  EXPECT_DEATH(ReadWord(memory.base().As<void>()), "");
  EXPECT_DEATH(*memory.base().As<volatile std::uint64_t>() = 1, "");
  // Negative control: pinned host memory may be read.
  ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, device_->AllocateHost(64));
  ReadWord(buffer.data());
}

TEST_F(HostDeviceDeathTest, AHostFunctionMayNotFollowDevicePointersEither) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  MappedMemory memory(*device_, granularity());
  EXPECT_DEATH(
      {
        device_->HostFunction(*stream_, &ReadWord, memory.base().As<void>()).IgnoreError();
        device_->Synchronize(*stream_).IgnoreError();
      },
      "");
}

TEST_F(HostDeviceTest, WindowsStayOpenForOtherStreamsWhileOneFinishes) {
  MappedMemory memory(*device_, granularity());
  ASSERT_OK_AND_ASSIGN(const auto other, device_->CreateStream("other"));
  // Two workers open and close the same window at all moments; every access must find it open.
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK(Launch(*device_, *other, PokeOp(), ShapeFor(1),
                     PokeParams{(memory.base() + 64).As<std::uint64_t>(), 1}));
    ASSERT_OK(Poke(memory.base(), static_cast<std::uint64_t>(i)));
    if (i % 3 == 0) {
      ASSERT_OK(device_->Synchronize(*other));
    }
    if (i % 5 == 0) {
      ASSERT_OK(device_->Synchronize(*stream_));
    }
  }
  ASSERT_OK(device_->Synchronize(*other));
  EXPECT_EQ(Download<std::uint64_t>(memory.base(), 1)[0], 199u);
}

TEST_F(HostDeviceTest, MappingsMadeWhileAnExecutorRunsAreOpenForIt) {
  ASSERT_OK_AND_ASSIGN(const auto busy, device_->CreateStream("busy"));
  ASSERT_OK(Launch(*device_, *busy, SpinOp(), ShapeFor(1), SpinParams{50'000}));
  MappedMemory memory(*device_, granularity());
  ASSERT_OK(Poke(memory.base(), 3));
  EXPECT_EQ(Download<std::uint64_t>(memory.base(), 1)[0], 3u);
  EXPECT_OK(device_->Synchronize(*busy));
}

TEST_F(HostDeviceTest, AStrayAccessLosesTheDeviceNotTheProcess) {
  ASSERT_OK_AND_ASSIGN(const AddressRange unmapped, device_->ReserveAddress(granularity(), {}));
  MappedMemory memory(*device_, granularity());
  {
    Gate gate(*device_, *stream_);
    ASSERT_OK(Poke(memory.base(), 1));
    ASSERT_OK(Poke(unmapped.base + 64, 1));
    ASSERT_OK(Poke(memory.base(), 2));  // behind the fault: drained, never run
  }
  const absl::Status lost = device_->Synchronize(*stream_);
  EXPECT_THAT(lost, IsErrorKind(ErrorKind::kDeviceLost));
  EXPECT_NE(std::string(lost.message()).find("poke"), std::string::npos) << lost;

  // Sticky, on every stream and for every kind of work; memory calls still clean up.
  ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, device_->AllocateHost(64));
  EXPECT_THAT(Poke(memory.base(), 3), IsErrorKind(ErrorKind::kDeviceLost));
  EXPECT_THAT(device_->Fill(*stream_, memory.base(), 0, 8), IsErrorKind(ErrorKind::kDeviceLost));
  EXPECT_THAT(device_->CopyToHost(*stream_, buffer.data(), memory.base(), 8),
              IsErrorKind(ErrorKind::kDeviceLost));
  EXPECT_THAT(device_->HostFunction(
                  *stream_, [](void*) {}, nullptr),
              IsErrorKind(ErrorKind::kDeviceLost));
  EXPECT_THAT(device_->BeginCapture(*stream_), IsErrorKind(ErrorKind::kDeviceLost));
  EXPECT_THAT(device_->CreateStream("late"), IsErrorKind(ErrorKind::kDeviceLost));
  EXPECT_OK(device_->FreeAddress(unmapped));

  // The chunk was mapped nowhere else; another device of the process is well.
  const auto other = TestHostDevice();
  ASSERT_OK_AND_ASSIGN(const auto stream, other->CreateStream("other"));
  EXPECT_OK(other->Synchronize(*stream));
}

TEST_F(HostDeviceTest, AKernelWritingReadOnlyMemoryLosesTheDevice) {
  MappedMemory memory(*device_, 2 * granularity());
  MappedMemory target(*device_, granularity());
  ASSERT_OK(Poke(memory.base(), 77));
  ASSERT_OK(device_->Synchronize(*stream_));
  ASSERT_OK(device_->SetAccess(memory.range(), Access::kRead));
  // Reading is fine.
  ASSERT_OK(Launch(
      *device_, *stream_, PeekOp(), ShapeFor(1),
      PeekParams{memory.base().As<const std::uint64_t>(), target.base().As<std::uint64_t>()}));
  EXPECT_EQ(Download<std::uint64_t>(target.base(), 1)[0], 77u);
  ASSERT_OK(Poke(memory.base(), 78));
  EXPECT_THAT(device_->Synchronize(*stream_), IsErrorKind(ErrorKind::kDeviceLost));
}

TEST_F(HostDeviceTest, UnmappingUnderHeldWorkLosesTheDevice) {
  MappedMemory memory(*device_, granularity());
  {
    Gate gate(*device_, *stream_);
    ASSERT_OK(device_->Fill(*stream_, memory.base(), 1, 64));
    gate.WaitUntilReached();
    ASSERT_OK(device_->Unmap(memory.range()));  // nothing waits for the fill
  }
  EXPECT_THAT(device_->Synchronize(*stream_), IsErrorKind(ErrorKind::kDeviceLost));
  ASSERT_OK(device_->Map(memory.base(), memory.range().bytes, memory.chunk()));
}

TEST_F(HostDeviceTest, ReplayOverUnmappedPagesLosesTheDevice) {
  MappedMemory memory(*device_, granularity());
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Poke(memory.base(), 1));
  ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream_));
  ASSERT_OK_AND_ASSIGN(const auto executable, device_->Instantiate(*graph));
  ASSERT_OK(device_->Unmap(memory.range()));
  EXPECT_OK(device_->LaunchGraph(*stream_, *executable));
  EXPECT_THAT(device_->Synchronize(*stream_), IsErrorKind(ErrorKind::kDeviceLost));
  ASSERT_OK(device_->Map(memory.base(), memory.range().bytes, memory.chunk()));
}

TEST_F(HostDeviceTest, RecordedWritesToReadOnlyMemoryShowAtReplay) {
  MappedMemory memory(*device_, granularity());
  ASSERT_OK(device_->SetAccess(memory.range(), Access::kRead));
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(device_->Fill(*stream_, memory.base(), 1, 64));
  ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream_));
  ASSERT_OK_AND_ASSIGN(const auto executable, device_->Instantiate(*graph));
  ASSERT_OK(device_->LaunchGraph(*stream_, *executable));
  EXPECT_THAT(device_->Synchronize(*stream_), IsErrorKind(ErrorKind::kDeviceLost));
}

TEST_F(HostDeviceTest, CapacityIsFiniteAndComesBack) {
  const std::uint64_t capacity = device_->info().capacity_bytes;
  ASSERT_OK_AND_ASSIGN(const ChunkHandle most, device_->CreateChunk(capacity - granularity()));
  const auto refused = device_->CreateChunk(2 * granularity());
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_EQ(GetErrorInfo(refused.status())->need, 2 * granularity());
  EXPECT_EQ(GetErrorInfo(refused.status())->have, granularity());
  ASSERT_OK_AND_ASSIGN(const ChunkHandle last, device_->CreateChunk(granularity()));
  EXPECT_EQ(device_->Memory()->free_bytes, 0u);
  ASSERT_OK(device_->ReleaseChunk(most));
  EXPECT_EQ(device_->Memory()->free_bytes, capacity - granularity());
  // A gap in the middle of what was handed out costs nothing.
  ASSERT_OK_AND_ASSIGN(const ChunkHandle again, device_->CreateChunk(capacity - granularity()));
  ASSERT_OK(device_->ReleaseChunk(again));
  ASSERT_OK(device_->ReleaseChunk(last));
  EXPECT_EQ(device_->Memory()->own_bytes, 0u);
}

// Bytes of memory behind all memfds of this process that belong to host devices.
std::uint64_t BackedBytes() {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const auto target = std::filesystem::read_symlink(entry.path(), ignored);
    if (target.string().rfind("/memfd:holdfast-device", 0) != 0) continue;
    struct stat info;
    if (stat(entry.path().c_str(), &info) == 0) {
      bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
    }
  }
  return bytes;
}

TEST_F(HostDeviceTest, ReleasedPagesReturnToTheSystem) {
  const std::uint64_t before = BackedBytes();
  {
    MappedMemory memory(*device_, 16 * kMiB);
    ASSERT_OK(device_->Fill(*stream_, memory.base(), 1, 16 * kMiB));
    ASSERT_OK(device_->Synchronize(*stream_));
    EXPECT_GE(BackedBytes(), before + 16 * kMiB);
  }
  EXPECT_EQ(BackedBytes(), before);
}

TEST_F(HostDeviceTest, TwoDevicesDoNotKnowEachOther) {
  const auto other = TestHostDevice();
  ASSERT_OK_AND_ASSIGN(const auto other_stream, other->CreateStream("other"));
  MappedMemory mine(*device_, granularity());
  MappedMemory theirs(*other, granularity());
  ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, other->AllocateHost(64));
  const DeviceAddress host{reinterpret_cast<std::uint64_t>(buffer.data())};
  EXPECT_NE(mine.base(), theirs.base());
  EXPECT_FALSE(device_->Query(theirs.base()).mapped);
  EXPECT_FALSE(device_->Query(host).mapped);
  EXPECT_TRUE(other->Query(theirs.base()).mapped);
  EXPECT_NE(other->Query(theirs.base()).generation, device_->Query(mine.base()).generation);
  EXPECT_THAT(device_->Fill(*stream_, theirs.base(), 1, 8),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(device_->Fill(*other_stream, mine.base(), 1, 8),
              IsErrorKind(ErrorKind::kInvalidArgument));
  // Each works by itself, at the same time.
  ASSERT_OK(device_->Fill(*stream_, mine.base(), 1, 8));
  ASSERT_OK(other->Fill(*other_stream, theirs.base(), 2, 8));
  ASSERT_OK(other->Synchronize(*other_stream));
  EXPECT_EQ(Download<std::uint8_t>(mine.base(), 1)[0], 1);
}

TEST_F(HostDeviceTest, CopiesNeedPinnedMemoryOfTheDevice) {
  MappedMemory memory(*device_, granularity());
  std::vector<std::byte> pageable(64);
  EXPECT_THAT(device_->CopyToDevice(*stream_, memory.base(), pageable.data(), 64),
              IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, device_->AllocateHost(64));
  EXPECT_THAT(device_->CopyToHost(*stream_, buffer.data(), memory.base(), 65),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(device_->CopyToHost(*stream_, buffer.data(), memory.range().end(), 8),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_OK(device_->CopyToHost(*stream_, buffer.data(), memory.base(), 64));
  EXPECT_OK(device_->Synchronize(*stream_));
}

TEST_F(HostDeviceTest, ThePinLimitStopsPinnedBuffersOnly) {
  const auto device = TestHostDevice({.host_pin_limit_bytes = 10000});
  ASSERT_OK_AND_ASSIGN(HostBuffer first, device->AllocateHost(6000));
  const auto refused = device->AllocateHost(4001);
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfHostMemory));
  EXPECT_EQ(GetErrorInfo(refused.status())->call, "pin");
  EXPECT_EQ(GetErrorInfo(refused.status())->need, 4001u);
  EXPECT_EQ(GetErrorInfo(refused.status())->have, 4000u);
  EXPECT_OK(device->AllocateHost(4000));  // and back at once
  EXPECT_OK(device->AllocateHost(50000, HostMemoryKind::kPageable));
  first = HostBuffer();
  EXPECT_OK(device->AllocateHost(10000));
  EXPECT_TRUE(device->calls().Balanced());
}

TEST_F(HostDeviceTest, ManyThreadsMayEnqueueAndWait) {
  MappedMemory memory(*device_, granularity());
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_OK(Launch(*device_, *stream_, ScaleOp(), ShapeFor(1),
                         ScaleParams{memory.base().As<float>() + t * 16, 1, 1.0f, 1.0f}));
        if (i % 10 == 0) {
          EXPECT_OK(device_->Synchronize(*stream_));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t t = 0; t < 4; ++t) {
    EXPECT_EQ(Download<float>(memory.base() + t * 64, 1)[0], 50.0f);
  }
}

}  // namespace
}  // namespace holdfast
