// Chunks that travel: one memory in two devices, the sizes and kinds that are refused.
#include <fcntl.h>

#include <memory>
#include <vector>

#include "tests/device/device_fixture.h"

namespace holdfast {
namespace {

using ExportConformance = DeviceTest;

// A chunk of `device` mapped somewhere, read-write.
AddressRange MapSomewhere(Device& device, ChunkHandle chunk, std::uint64_t bytes) {
  const absl::StatusOr<AddressRange> range = device.ReserveAddress(bytes, {});
  EXPECT_OK(range);
  if (!range.ok()) return {};
  EXPECT_OK(device.Map(range->base, bytes, chunk));
  EXPECT_OK(device.SetAccess(*range, Access::kReadWrite));
  return *range;
}

void End(Device& device, AddressRange range, ChunkHandle chunk) {
  EXPECT_OK(device.Unmap(range));
  EXPECT_OK(device.ReleaseChunk(chunk));
  EXPECT_OK(device.FreeAddress(range));
}

TEST_F(ExportConformance, AnImportedChunkIsTheSameMemory) {
  const std::uint64_t g = granularity();
  ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device_->CreateChunk(2 * g, {.shareable = true}));
  const AddressRange here = MapSomewhere(*device_, chunk, 2 * g);
  Upload<std::uint32_t>(here.base + g, {11, 12, 13});

  const std::unique_ptr<Device> other = TestDevice();
  ASSERT_OK_AND_ASSIGN(FileDescriptor file, device_->ExportChunk(chunk));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle imported, other->ImportChunk(file, 2 * g));
  file = {};  // the chunk does not need it any more
  const AddressRange there = MapSomewhere(*other, imported, 2 * g);
  EXPECT_EQ(other->Memory()->imported_bytes, 2 * g);
  EXPECT_EQ(other->Memory()->own_bytes, 0u);
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Stream> stream, other->CreateStream("importer"));
    ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, other->AllocateHost(4));
    ASSERT_OK(other->CopyToHost(*stream, buffer.data(), there.base + (g + 4), 4));
    ASSERT_OK(other->Synchronize(*stream));
    EXPECT_EQ(*reinterpret_cast<const std::uint32_t*>(buffer.data()), 12u);
    // And the other way.
    ASSERT_OK(other->Fill(*stream, there.base, 0x5a, 4));
    ASSERT_OK(other->Synchronize(*stream));
  }
  EXPECT_EQ(Download<std::uint32_t>(here.base, 1)[0], 0x5a5a5a5au);
  End(*other, there, imported);
  EXPECT_EQ(other->Memory()->imported_bytes, 0u);
  EXPECT_TRUE(other->calls().Balanced());
  End(*device_, here, chunk);
  EXPECT_TRUE(device_->calls().Balanced());
}

TEST_F(ExportConformance, PagesLiveAsLongAsTheirImport) {
  const std::uint64_t g = granularity();
  ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device_->CreateChunk(g, {.shareable = true}));
  const AddressRange here = MapSomewhere(*device_, chunk, g);
  Upload<std::uint32_t>(here.base, {7});
  ASSERT_OK_AND_ASSIGN(const FileDescriptor file, device_->ExportChunk(chunk));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle imported, device_->ImportChunk(file, g));
  End(*device_, here, chunk);
  EXPECT_EQ(device_->Memory()->own_bytes, 0u);
  const AddressRange there = MapSomewhere(*device_, imported, g);
  EXPECT_EQ(Download<std::uint32_t>(there.base, 1)[0], 7u);
  End(*device_, there, imported);
  EXPECT_TRUE(device_->calls().Balanced());
}

TEST_F(ExportConformance, OnlyShareableChunksAreExported) {
  ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device_->CreateChunk(granularity()));
  EXPECT_THAT(device_->ExportChunk(chunk), IsErrorKind(ErrorKind::kUnsupported));
  EXPECT_THAT(device_->ExportChunk({}), IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK(device_->ReleaseChunk(chunk));
  EXPECT_THAT(device_->ExportChunk(chunk), IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST_F(ExportConformance, WhatIsNoExportedChunkIsNotImported) {
  const std::uint64_t g = granularity();
  EXPECT_THAT(device_->ImportChunk(FileDescriptor(), g), IsErrorKind(ErrorKind::kInvalidArgument));
  const FileDescriptor other(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(other);
  EXPECT_FALSE(device_->ImportChunk(other, g).ok());
  EXPECT_THAT(device_->ImportChunk(other, g + 1), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_TRUE(device_->calls().Balanced());
}

TEST(ExportHostTest, AnotherSizeIsRefusedAtOnce) {
  const std::unique_ptr<Device> device = TestHostDevice();
  const std::uint64_t g = device->info().granularity;
  ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device->CreateChunk(2 * g, {.shareable = true}));
  ASSERT_OK_AND_ASSIGN(const FileDescriptor file, device->ExportChunk(chunk));
  const auto imported = device->ImportChunk(file, g);
  EXPECT_THAT(imported, IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(GetErrorInfo(imported.status())->need, 2 * g);
  EXPECT_EQ(device->Memory()->imported_bytes, 0u);
  ASSERT_OK(device->ReleaseChunk(chunk));
}

}  // namespace
}  // namespace holdfast
