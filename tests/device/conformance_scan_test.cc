// Verifies that a scan of device memory finds the same addresses as one on the host, that
// given-back addresses are remembered, and that graphs of others are borrowed.
#include <algorithm>
#include <cstring>
#include <new>

#include "tests/device/device_fixture.h"
#include "tests/device/test_ops.h"

namespace holdfast {
namespace {

class ScanConformance : public DeviceTest {};

TEST_F(ScanConformance, FindsWhatTheHostFinds) {
  const std::uint64_t bytes = granularity();
  MappedMemory memory(*device_, bytes);
  std::vector<std::uint64_t> words(bytes / 8);
  std::uint64_t state = 1;
  for (std::uint64_t& word : words) word = HashMix(state++) >> 8;  // all below 2^56
  for (std::uint64_t i = 0; i < 700; ++i) words[i * 300 + 7] = 0x200000000000 + i * 8;
  words.back() = 0x200000000000 + 4096;
  Upload(memory.base(), words);

  ASSERT_OK_AND_ASSIGN(const HostBuffer block, device_->AllocateHost(2 * sizeof(WordScan)));
  WordScan* const scan = new (block.data()) WordScan{};
  WordScan* const expected = new (block.data() + sizeof(WordScan)) WordScan{};
  for (WordScan* s : {scan, expected}) {
    s->low = 0x200000000000;
    s->high = 0x200000000000 + 8192;
    s->range_count = 2;
    s->ranges[0] = {0x200000000000, 0x200000000000 + 1024};
    s->ranges[1] = {0x200000000000 + 1024, 0x200000000000 + 4096};
  }
  ScanWordsOnHost(words.data(), bytes, expected);
  ASSERT_GT(expected->counts[0], 100u);
  ASSERT_GT(expected->counts[1], 100u);
  ASSERT_GT(expected->found, 100u);
  ASSERT_LT(expected->found, kMaxScanHits);

  ASSERT_OK(device_->ScanWords(*stream_, memory.range(), scan));
  ASSERT_OK(device_->Synchronize(*stream_));
  EXPECT_EQ(scan->counts[0], expected->counts[0]);
  EXPECT_EQ(scan->counts[1], expected->counts[1]);
  ASSERT_EQ(scan->found, expected->found);
  const auto sorted = [](const WordScan& s) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> hits;
    for (std::uint64_t i = 0; i < s.found; ++i) hits.emplace_back(s.hits[i].offset, s.hits[i].word);
    std::sort(hits.begin(), hits.end());
    return hits;
  };
  EXPECT_EQ(sorted(*scan), sorted(*expected));

  // Control: one word more, and the counts tell.
  words[3] = 0x200000000000 + 8;
  Upload(memory.base(), words);
  *scan = *expected;
  std::fill(std::begin(scan->counts), std::end(scan->counts), 0);
  scan->found = 0;
  ASSERT_OK(device_->ScanWords(*stream_, memory.range(), scan));
  ASSERT_OK(device_->Synchronize(*stream_));
  EXPECT_EQ(scan->counts[0], expected->counts[0] + 1);
}

TEST(WordScan, AWordAtAnEndBelongsToTheRangeThatBeginsThere) {
  const WordScan::Range ranges[3] = {{10, 20}, {20, 30}, {40, 50}};
  EXPECT_EQ(FindScanRange(ranges, 3, 9), 3u);
  EXPECT_EQ(FindScanRange(ranges, 3, 10), 0u);
  EXPECT_EQ(FindScanRange(ranges, 3, 20), 1u);
  EXPECT_EQ(FindScanRange(ranges, 3, 30), 1u);
  EXPECT_EQ(FindScanRange(ranges, 3, 35), 3u);
  EXPECT_EQ(FindScanRange(ranges, 3, 50), 2u);
  EXPECT_EQ(FindScanRange(ranges, 0, 10), 0u);
}

TEST_F(ScanConformance, RefusesWhatItCannotRead) {
  MappedMemory memory(*device_, granularity());
  ASSERT_OK_AND_ASSIGN(const HostBuffer block, device_->AllocateHost(sizeof(WordScan)));
  WordScan* const scan = new (block.data()) WordScan{};
  const AddressRange range = memory.range();
  EXPECT_THAT(device_->ScanWords(*stream_, {range.base + 4, 64}, scan),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(device_->ScanWords(*stream_, range, nullptr),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(device_->ScanWords(*stream_, {range.base, 2 * range.bytes}, scan),
              IsErrorKind(ErrorKind::kInvalidArgument));
  auto in_pageable = std::make_unique<WordScan>();
  EXPECT_THAT(device_->ScanWords(*stream_, range, in_pageable.get()),
              IsErrorKind(ErrorKind::kInvalidArgument));
  scan->range_count = kMaxScanRanges + 1;
  EXPECT_THAT(device_->ScanWords(*stream_, range, scan), IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST_F(ScanConformance, AddressesThatWereGivenBackAreRemembered) {
  ASSERT_OK_AND_ASSIGN(const AddressRange range, device_->ReserveAddress(granularity(), {}));
  EXPECT_TRUE(device_->Query(range.base).reserved);
  EXPECT_FALSE(device_->Query(range.base).freed);
  ASSERT_OK(device_->FreeAddress(range));
  EXPECT_FALSE(device_->Query(range.base).reserved);
  EXPECT_TRUE(device_->Query(range.base + 4096).freed);
  DeviceAddress host;
  {
    ASSERT_OK_AND_ASSIGN(const HostBuffer buffer, device_->AllocateHost(4096));
    host.value = reinterpret_cast<std::uint64_t>(buffer.data());
    EXPECT_FALSE(device_->Query(host).freed);
  }
  EXPECT_TRUE(device_->Query(host).freed);
}

TEST_F(ScanConformance, TensorMapsAreTheDriversBusiness) {
  alignas(128) std::byte map[kTensorMapBytes] = {};
  EXPECT_THAT(device_->RebaseTensorMap(nullptr, {4096}), IsErrorKind(ErrorKind::kInvalidArgument));
  if (!device_->info().is_cuda) {
    EXPECT_THAT(device_->RebaseTensorMap(map, {4096}), IsErrorKind(ErrorKind::kUnsupported));
  }
}

}  // namespace
}  // namespace holdfast
