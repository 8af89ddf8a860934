// Work on streams, as every device must do it: in order, asynchronous, with deadlines.
#include <chrono>
#include <numeric>
#include <vector>

#include "testing/gate.h"
#include "tests/device/device_fixture.h"
#include "tests/device/test_ops.h"

namespace holdfast {
namespace {

using StreamConformance = DeviceTest;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::vector<float> Ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST_F(StreamConformance, KernelsComputeOnMappedMemory) {
  constexpr std::size_t kCount = 1000;
  MappedMemory memory(*device_, 3 * kCount * sizeof(float));
  const DeviceAddress b = memory.base() + kCount * sizeof(float);
  const DeviceAddress out = b + kCount * sizeof(float);
  Upload(memory.base(), Ramp(kCount));
  Upload(b, std::vector<float>(kCount, 0.5f));
  AddParams params{memory.base().As<const float>(), b.As<const float>(), out.As<float>(), kCount};
  ASSERT_OK(Launch(*device_, *stream_, AddOp(), ShapeFor(kCount), params));
  params = {};  // the bytes were copied at the call
  const auto sums = Download<float>(out, kCount);
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(sums[i], static_cast<float>(i) + 1.5f);
}

TEST_F(StreamConformance, CopiesAndFillsRoundTrip) {
  MappedMemory memory(*device_, 2 * granularity());
  const auto values = Ramp(5000);
  Upload(memory.base() + 12, values);
  const DeviceAddress copy = memory.base() + granularity();
  ASSERT_OK(device_->CopyOnDevice(*stream_, copy, memory.base() + 12, values.size() * 4));
  ASSERT_OK(device_->Fill(*stream_, memory.base(), 0xab, 100));
  EXPECT_EQ(Download<float>(copy, values.size()), values);
  EXPECT_EQ(Download<std::uint8_t>(memory.base(), 100), std::vector<std::uint8_t>(100, 0xab));
  EXPECT_EQ(Download<std::uint8_t>(memory.base() + 100, 1)[0],
            reinterpret_cast<const std::uint8_t*>(values.data())[88]);
}

TEST_F(StreamConformance, EmptyCopiesAndFillsDoNothing) {
  MappedMemory memory(*device_, granularity());
  EXPECT_OK(device_->CopyOnDevice(*stream_, memory.base(), memory.base(), 0));
  EXPECT_OK(device_->Fill(*stream_, memory.base(), 1, 0));
  EXPECT_OK(device_->HashLeaves(*stream_, {memory.base(), 0}, nullptr));
  EXPECT_OK(device_->Synchronize(*stream_));
}

TEST_F(StreamConformance, HashesEqualTheHostsLeafByLeaf) {
  // Two whole leaves and a tail of odd length.
  const std::uint64_t bytes = 2 * kHashLeafBytes + 4099;
  MappedMemory memory(*device_, bytes);
  std::vector<std::uint64_t> words(bytes / 8 + 1);
  std::uint64_t state = 1;
  for (std::uint64_t& word : words) word = HashMix(state++);
  Upload(memory.base(), words);
  const auto hashes = Hash({memory.base(), bytes});
  const char* data = reinterpret_cast<const char*>(words.data());
  ASSERT_EQ(hashes.size(), 3u);
  EXPECT_EQ(hashes[0], HashLeafOnHost(data, kHashLeafBytes));
  EXPECT_EQ(hashes[1], HashLeafOnHost(data + kHashLeafBytes, kHashLeafBytes));
  EXPECT_EQ(hashes[2], HashLeafOnHost(data + 2 * kHashLeafBytes, 4099));

  // Negative controls: one bit, and two words swapped, each in one leaf.
  words[5] ^= 1u << 13;
  std::swap(words[kHashLeafBytes / 8 + 1], words[kHashLeafBytes / 8 + 77]);
  Upload(memory.base(), words);
  const auto changed = Hash({memory.base(), bytes});
  EXPECT_NE(changed[0], hashes[0]);
  EXPECT_NE(changed[1], hashes[1]);
  EXPECT_EQ(changed[2], hashes[2]);
}

// Bases and sizes on either side of a unit, a row and a tile; contents that change place between
// leaves.
TEST_F(StreamConformance, HashesOfAnyPieceEqualTheHosts) {
  MappedMemory memory(*device_, 2 * kHashLeafBytes);
  std::vector<std::uint64_t> words(2 * kHashLeafBytes / 8);
  std::uint64_t state = 1;
  for (std::uint64_t& word : words) word = HashMix(state++);
  Upload(memory.base(), words);
  const char* data = reinterpret_cast<const char*>(words.data());
  for (const std::uint64_t offset : {0, 8, 16, 520}) {
    for (const std::uint64_t bytes : {1, 7, 8, 9, 16, 17, 511, 512, 4096, 4097, 33000, 300000}) {
      const std::vector<Hash128> hashes = Hash({memory.base() + offset, bytes});
      EXPECT_EQ(hashes[0], HashLeafOnHost(data + offset, bytes)) << offset << " " << bytes;
    }
  }
  const std::vector<Hash128> before = Hash(memory.range());
  std::swap_ranges(words.begin(), words.begin() + kHashLeafBytes / 8,
                   words.begin() + kHashLeafBytes / 8);
  Upload(memory.base(), words);
  const std::vector<Hash128> after = Hash(memory.range());
  EXPECT_NE(after[0], before[0]);
  EXPECT_EQ(after[0], before[1]);
  EXPECT_EQ(after[1], before[0]);
}

TEST_F(StreamConformance, PageableBuffersAreCopiedButNeitherCapturedNorMapped) {
  MappedMemory memory(*device_, granularity());
  const std::vector<std::uint32_t> values = {1, 2, 3, 0xffffffffu};
  ASSERT_OK_AND_ASSIGN(HostBuffer buffer, device_->AllocateHost(64, HostMemoryKind::kPageable));
  EXPECT_EQ(buffer.kind(), HostMemoryKind::kPageable);
  EXPECT_EQ(buffer.data()[63], std::byte{0});
  EXPECT_FALSE(device_->Query({reinterpret_cast<std::uint64_t>(buffer.data())}).mapped);
  std::memcpy(buffer.data(), values.data(), 16);
  ASSERT_OK(device_->CopyToDevice(*stream_, memory.base(), buffer.data(), 16));
  ASSERT_OK(device_->CopyToHost(*stream_, buffer.data() + 48, memory.base(), 16));
  ASSERT_OK(device_->Synchronize(*stream_));
  EXPECT_EQ(std::memcmp(buffer.data() + 48, values.data(), 16), 0);

  // Past its end, into memory that is no buffer, and as the place of hashes.
  EXPECT_THAT(device_->CopyToHost(*stream_, buffer.data() + 49, memory.base(), 16),
              IsErrorKind(ErrorKind::kInvalidArgument));
  std::vector<std::uint32_t> stray(4);
  EXPECT_THAT(device_->CopyToHost(*stream_, stray.data(), memory.base(), 16),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_FALSE(
      device_->HashLeaves(*stream_, {memory.base(), 8}, reinterpret_cast<Hash128*>(buffer.data()))
          .ok());
  ASSERT_OK(device_->BeginCapture(*stream_));
  EXPECT_FALSE(device_->CopyToDevice(*stream_, memory.base(), buffer.data(), 16).ok());
  device_->EndCapture(*stream_).status().IgnoreError();
  HostBuffer moved = std::move(buffer);
  EXPECT_EQ(moved.kind(), HostMemoryKind::kPageable);
  moved = HostBuffer();
  EXPECT_OK(device_->Fill(*stream_, memory.base(), 0, 16));
  EXPECT_OK(device_->Synchronize(*stream_));
}

TEST_F(StreamConformance, WorkOfOneStreamRunsInOrder) {
  MappedMemory memory(*device_, granularity());
  Upload(memory.base(), std::vector<float>{1.0f});
  // x -> 2x + 1, twenty times; any other order than first to last gives another value with the
  // fill.
  for (int i = 0; i < 20; ++i) {
    const ScaleParams params{memory.base().As<float>(), 1, 2.0f, 1.0f};
    ASSERT_OK(Launch(*device_, *stream_, ScaleOp(), ShapeFor(1), params));
    if (i == 9) {
      ASSERT_OK(device_->Fill(*stream_, memory.base(), 0, sizeof(float)));
    }
  }
  EXPECT_EQ(Download<float>(memory.base(), 1)[0], 1023.0f);
}

TEST_F(StreamConformance, AGateHoldsItsStreamOnly) {
  MappedMemory memory(*device_, granularity());
  ASSERT_OK_AND_ASSIGN(const auto other, device_->CreateStream("other"));
  // Taken before the gate and given back after it: a GPU's driver gives pinned memory back only
  // when nothing runs.
  ASSERT_OK_AND_ASSIGN(const HostBuffer seen, device_->AllocateHost(8));
  // Run once before: a GPU loads a kernel at its first launch, and what is enqueued after that
  // waits with it.
  ASSERT_OK(Launch(*device_, *stream_, PokeOp(), ShapeFor(1),
                   PokeParams{memory.base().As<std::uint64_t>(), 0}));
  ASSERT_OK(device_->Synchronize(*stream_));
  {
    Gate gate(*device_, *stream_);
    ASSERT_OK(gate.status());
    ASSERT_OK(Launch(*device_, *stream_, PokeOp(), ShapeFor(1),
                     PokeParams{memory.base().As<std::uint64_t>(), 5}));
    gate.WaitUntilReached();
    EXPECT_THAT(device_->SynchronizeBy(*stream_, steady_clock::now() + milliseconds(20)),
                IsErrorKind(ErrorKind::kDeadlineExceeded));
    EXPECT_OK(device_->Synchronize(*other));
    // The held work has not run.
    ASSERT_OK(device_->CopyToHost(*other, seen.data(), memory.base(), 8));
    ASSERT_OK(device_->Synchronize(*other));
    EXPECT_EQ(*reinterpret_cast<const std::uint64_t*>(seen.data()), 0u);
  }
  EXPECT_EQ(Download<std::uint64_t>(memory.base(), 1)[0], 5u);
}

TEST_F(StreamConformance, EnqueueingDoesNotWaitForTheWork) {
  const auto start = steady_clock::now();
  ASSERT_OK(Launch(*device_, *stream_, SpinOp(), ShapeFor(1), SpinParams{200'000}));
  ASSERT_OK(Launch(*device_, *stream_, SpinOp(), ShapeFor(1), SpinParams{200'000}));
  EXPECT_LT(steady_clock::now() - start, milliseconds(300));
  EXPECT_OK(device_->SynchronizeBy(*stream_, start + std::chrono::seconds(60)));
  EXPECT_GE(steady_clock::now() - start, milliseconds(400));
}

TEST_F(StreamConformance, DestructionWaitsForTheWork) {
  MappedMemory memory(*device_, granularity());
  ASSERT_OK_AND_ASSIGN(auto brief, device_->CreateStream("brief"));
  ASSERT_OK(Launch(*device_, *brief, SpinOp(), ShapeFor(1), SpinParams{20'000}));
  ASSERT_OK(Launch(*device_, *brief, PokeOp(), ShapeFor(1),
                   PokeParams{memory.base().As<std::uint64_t>(), 9}));
  brief.reset();
  EXPECT_EQ(Download<std::uint64_t>(memory.base(), 1)[0], 9u);
}

TEST_F(StreamConformance, WrongRequestsAreRefused) {
  MappedMemory memory(*device_, granularity());
  ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, device_->AllocateHost(64));
  EXPECT_FALSE(device_->CopyToDevice(*stream_, memory.base(), nullptr, 8).ok());
  EXPECT_FALSE(device_->CopyToDevice(*stream_, {}, buffer.data(), 8).ok());
  EXPECT_FALSE(device_->HashLeaves(*stream_, {memory.base() + 4, 8}, nullptr).ok());
  EXPECT_FALSE(device_->HostFunction(*stream_, nullptr, nullptr).ok());
  EXPECT_FALSE(device_->Launch(*stream_, AddOp(), {}, nullptr).ok());
  const PokeParams params{memory.base().As<std::uint64_t>(), 1};
  EXPECT_FALSE(Launch(*device_, *stream_, PokeOp(), {.grid = {0}}, params).ok());
  EXPECT_THAT(Launch(*device_, *stream_, AddOp(), {}, params), IsErrorKind(ErrorKind::kInternal));
  // The other device's twin only: nothing to run here.
  Op no_twin = PokeOp();
  no_twin.host = nullptr;
  no_twin.cuda = nullptr;
  EXPECT_THAT(Launch(*device_, *stream_, no_twin, {}, params),
              IsErrorKind(ErrorKind::kUnsupported));
  EXPECT_OK(device_->Synchronize(*stream_));
}

}  // namespace
}  // namespace holdfast
