// Windows, chunks, mappings and access, as every device must do them.
#include <numeric>
#include <vector>

#include "tests/device/device_fixture.h"
#include "tests/device/test_ops.h"

namespace holdfast {
namespace {

using MemoryConformance = DeviceTest;

std::vector<std::uint32_t> Pattern(std::size_t count) {
  std::vector<std::uint32_t> values(count);
  std::iota(values.begin(), values.end(), 0x1000u);
  return values;
}

TEST_F(MemoryConformance, ReservationComesBackAtTheHint) {
  ASSERT_OK_AND_ASSIGN(const AddressRange range, device_->ReserveAddress(1, kTestBase));
  EXPECT_EQ(range.base, kTestBase);
  EXPECT_EQ(range.bytes, granularity());
  // A taken hint is moved, not refused: the caller compares.
  ASSERT_OK_AND_ASSIGN(const AddressRange moved,
                       device_->ReserveAddress(3 * granularity(), kTestBase));
  EXPECT_NE(moved.base, kTestBase);
  EXPECT_EQ(moved.base.value % granularity(), 0u);
  EXPECT_OK(device_->FreeAddress(moved));
  EXPECT_OK(device_->FreeAddress(range));
  EXPECT_TRUE(device_->calls().Balanced());
}

TEST_F(MemoryConformance, RemappingAHandleKeepsItsContents) {
  const auto values = Pattern(1000);
  MappedMemory memory(*device_, granularity(), kTestBase);
  Upload(memory.base(), values);
  ASSERT_OK(device_->Unmap(memory.range()));
  EXPECT_FALSE(device_->Query(memory.base()).mapped);
  ASSERT_OK(device_->Map(memory.base(), memory.range().bytes, memory.chunk()));
  ASSERT_OK(device_->SetAccess(memory.range(), Access::kReadWrite));
  EXPECT_EQ(Download<std::uint32_t>(memory.base(), values.size()), values);
}

TEST_F(MemoryConformance, ANewHandleReadsZeroAtTheSameAddress) {
  ASSERT_OK_AND_ASSIGN(const AddressRange range, device_->ReserveAddress(granularity(), kTestBase));
  std::uint64_t generation = 0;
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device_->CreateChunk(range.bytes));
    ASSERT_OK(device_->Map(range.base, range.bytes, chunk));
    ASSERT_OK(device_->SetAccess(range, Access::kReadWrite));
    EXPECT_EQ(Download<std::uint32_t>(range.base, 1000), std::vector<std::uint32_t>(1000, 0));
    EXPECT_NE(device_->Query(range.base).generation, generation);
    generation = device_->Query(range.base).generation;
    Upload(range.base, Pattern(1000));
    ASSERT_OK(device_->Unmap(range));
    ASSERT_OK(device_->ReleaseChunk(chunk));
  }
  ASSERT_OK(device_->FreeAddress(range));
  EXPECT_TRUE(device_->calls().Balanced());
}

TEST_F(MemoryConformance, GenerationFollowsTheChunkNotTheMapping) {
  MappedMemory first(*device_, granularity());
  MappedMemory second(*device_, granularity());
  const std::uint64_t generation = device_->Query(first.base()).generation;
  EXPECT_NE(generation, 0u);
  EXPECT_NE(generation, device_->Query(second.base()).generation);
  ASSERT_OK(device_->Unmap(first.range()));
  ASSERT_OK(device_->Map(first.base(), first.range().bytes, first.chunk()));
  EXPECT_EQ(device_->Query(first.base() + 17).generation, generation);
}

TEST_F(MemoryConformance, QueryKnowsEveryState) {
  // Two granules, one mapped: what lies past a reservation is somebody else's business.
  ASSERT_OK_AND_ASSIGN(const AddressRange both, device_->ReserveAddress(2 * granularity(), {}));
  const AddressRange range{both.base, granularity()};
  EXPECT_FALSE(device_->Query({0}).mapped);
  EXPECT_FALSE(device_->Query({42}).mapped);
  EXPECT_FALSE(device_->Query(range.base).mapped);
  int on_stack = 0;
  EXPECT_FALSE(device_->Query({reinterpret_cast<std::uint64_t>(&on_stack)}).mapped);

  ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device_->CreateChunk(range.bytes));
  ASSERT_OK(device_->Map(range.base, range.bytes, chunk));
  EXPECT_TRUE(device_->Query(range.base).mapped);
  EXPECT_EQ(device_->Query(range.base).access, Access::kNone);
  for (const Access access : {Access::kReadWrite, Access::kRead, Access::kNone}) {
    ASSERT_OK(device_->SetAccess(range, access));
    EXPECT_EQ(device_->Query(range.base + 4097).access, access);
  }
  EXPECT_FALSE(device_->Query(range.base).host);
  EXPECT_FALSE(device_->Query(range.end()).mapped);

  ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, device_->AllocateHost(10000));
  const DeviceAddress host{reinterpret_cast<std::uint64_t>(buffer.data())};
  EXPECT_TRUE(device_->Query(host + 9999).mapped);
  EXPECT_TRUE(device_->Query(host + 9999).host);

  ASSERT_OK(device_->Unmap(range));
  EXPECT_FALSE(device_->Query(range.base).mapped);
  ASSERT_OK(device_->ReleaseChunk(chunk));
  ASSERT_OK(device_->FreeAddress(both));
}

TEST_F(MemoryConformance, WrongMappingsAreRefusedAndChangeNothing) {
  const std::uint64_t g = granularity();
  ASSERT_OK_AND_ASSIGN(const AddressRange range, device_->ReserveAddress(6 * g, {}));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device_->CreateChunk(2 * g));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle other, device_->CreateChunk(2 * g));
  const DeviceAddress base = range.base;
  ASSERT_OK(device_->Map(base, 2 * g, chunk));

  EXPECT_FALSE(device_->Map(base, 2 * g, other).ok()) << "over a mapping";
  EXPECT_FALSE(device_->Map(base + g, 2 * g, other).ok()) << "half over a mapping";
  EXPECT_FALSE(device_->Map(base + 2 * g, g, other).ok()) << "half a chunk";
  EXPECT_FALSE(device_->Map(base + 5 * g, 2 * g, other).ok()) << "past the reservation";
  EXPECT_FALSE(device_->Map(base + 2 * g + 4096, 2 * g, other).ok()) << "misaligned";
  EXPECT_FALSE(device_->Unmap({base, g}).ok()) << "half a mapping";
  EXPECT_FALSE(device_->Unmap({base + 4 * g, 2 * g}).ok()) << "nothing";
  EXPECT_FALSE(device_->SetAccess({base, g}, Access::kReadWrite).ok()) << "half a mapping";
  EXPECT_FALSE(device_->SetAccess({base, 4 * g}, Access::kReadWrite).ok()) << "over a gap";
  EXPECT_FALSE(device_->FreeAddress(range).ok()) << "live mapping";
  EXPECT_FALSE(device_->FreeAddress({base, g}).ok()) << "part of a reservation";
  EXPECT_FALSE(device_->ReserveAddress(0, {}).ok());
  EXPECT_FALSE(device_->ReserveAddress(g, {base.value + 4096}).ok());
  EXPECT_FALSE(device_->CreateChunk(0).ok());
  EXPECT_FALSE(device_->CreateChunk(g + 1).ok());
  EXPECT_FALSE(device_->AllocateHost(0).ok());

  EXPECT_TRUE(device_->Query(base).mapped);
  EXPECT_FALSE(device_->Query(base + 2 * g).mapped);
  ASSERT_OK(device_->Map(base + 2 * g, 2 * g, other));
  // Neighbours are set and unmapped in one call; each mapping counts.
  EXPECT_OK(device_->SetAccess({base, 4 * g}, Access::kReadWrite));
  EXPECT_OK(device_->Unmap({base, 4 * g}));
  EXPECT_EQ(device_->calls().succeeded(Call::kMap), 2u);
  EXPECT_EQ(device_->calls().succeeded(Call::kUnmap), 2u);
  EXPECT_OK(device_->ReleaseChunk(chunk));
  EXPECT_OK(device_->ReleaseChunk(other));
  EXPECT_FALSE(device_->ReleaseChunk(other).ok()) << "twice";
  EXPECT_OK(device_->FreeAddress(range));
  EXPECT_TRUE(device_->calls().Balanced());
}

TEST_F(MemoryConformance, ReleasedChunkLivesWhileItIsMapped) {
  const std::uint64_t before = device_->Memory()->own_bytes;
  MappedMemory keeper(*device_, granularity());
  ASSERT_OK_AND_ASSIGN(const AddressRange range, device_->ReserveAddress(granularity(), {}));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device_->CreateChunk(range.bytes));
  ASSERT_OK(device_->Map(range.base, range.bytes, chunk));
  ASSERT_OK(device_->SetAccess(range, Access::kReadWrite));
  Upload(range.base, Pattern(100));
  ASSERT_OK(device_->ReleaseChunk(chunk));
  EXPECT_EQ(Download<std::uint32_t>(range.base, 100), Pattern(100));
  EXPECT_EQ(device_->Memory()->own_bytes, before + 2 * granularity());
  ASSERT_OK(device_->Unmap(range));
  EXPECT_EQ(device_->Memory()->own_bytes, before + granularity());
  ASSERT_OK(device_->FreeAddress(range));
}

TEST_F(MemoryConformance, OneChunkAtTwoAddressesIsOneMemory) {
  MappedMemory memory(*device_, granularity());
  ASSERT_OK_AND_ASSIGN(const AddressRange alias, device_->ReserveAddress(granularity(), {}));
  ASSERT_OK(device_->Map(alias.base, alias.bytes, memory.chunk()));
  ASSERT_OK(device_->SetAccess(alias, Access::kReadWrite));
  Upload(memory.base(), Pattern(100));
  EXPECT_EQ(Download<std::uint32_t>(alias.base, 100), Pattern(100));
  EXPECT_EQ(device_->Query(alias.base).generation, device_->Query(memory.base()).generation);
  ASSERT_OK(device_->Unmap(alias));
  ASSERT_OK(device_->FreeAddress(alias));
}

TEST_F(MemoryConformance, CopiesAndFillsIntoReadOnlyMemoryAreRefusedAtTheCall) {
  MappedMemory memory(*device_, granularity());
  Upload(memory.base(), Pattern(100));
  ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, device_->AllocateHost(400));
  ASSERT_OK(device_->SetAccess(memory.range(), Access::kRead));
  EXPECT_THAT(device_->CopyToDevice(*stream_, memory.base(), buffer.data(), 400),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(device_->Fill(*stream_, memory.base(), 7, 400),
              IsErrorKind(ErrorKind::kInvalidArgument));
  // Reading is allowed, nothing has changed, and the device is well.
  EXPECT_EQ(Download<std::uint32_t>(memory.base(), 100), Pattern(100));
  ASSERT_OK(device_->SetAccess(memory.range(), Access::kReadWrite));
  EXPECT_OK(device_->Fill(*stream_, memory.base(), 0, 400));
  EXPECT_OK(device_->Synchronize(*stream_));
}

TEST_F(MemoryConformance, HostBuffersAreZeroedExactAndGivenBack) {
  {
    ASSERT_OK_AND_ASSIGN(HostBuffer buffer, device_->AllocateHost(12345));
    EXPECT_EQ(buffer.size(), 12345u);
    for (std::uint64_t i = 0; i < buffer.size(); ++i) ASSERT_EQ(buffer.data()[i], std::byte{0});
    HostBuffer moved = std::move(buffer);
    EXPECT_EQ(buffer.data(), nullptr);
    EXPECT_EQ(moved.size(), 12345u);
    ASSERT_OK_AND_ASSIGN(moved, device_->AllocateHost(1));
    EXPECT_EQ(device_->calls().succeeded(Call::kFreeHost), 1u);
  }
  EXPECT_TRUE(device_->calls().Balanced());
}

TEST_F(MemoryConformance, TooMuchMemoryIsAnErrorWithSizes) {
  const std::uint64_t need = AlignUp(device_->info().capacity_bytes, granularity()) + granularity();
  const auto chunk = device_->CreateChunk(need);
  EXPECT_THAT(chunk, IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_EQ(GetErrorInfo(chunk.status())->need, need);
  EXPECT_LE(GetErrorInfo(chunk.status())->have, device_->info().capacity_bytes);
  EXPECT_THAT(device_->AllocateHost(std::uint64_t{1} << 60),
              IsErrorKind(ErrorKind::kOutOfHostMemory));
  EXPECT_TRUE(device_->calls().Balanced());
}

}  // namespace
}  // namespace holdfast
