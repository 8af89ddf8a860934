// Verifies the std::pmr resource over a range: placement, reuse, exhaustion, and containers on it.
#include "allocator/adapters/range_resource.h"

#include <vector>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

constexpr DeviceAddress kBase{0x10000};

std::uint64_t Offset(const void* address) {
  return reinterpret_cast<std::uint64_t>(address) - kBase.value;
}

TEST(RangeResourceTest, PlacesFirstFitAlignedAndReuses) {
  RangeResource resource("r", {kBase, 1024});
  void* const a = resource.allocate(100, 1);
  void* const b = resource.allocate(10, 256);
  void* const c = resource.allocate(10, 8);
  EXPECT_EQ(Offset(a), 0u);
  EXPECT_EQ(Offset(b), 256u);
  EXPECT_EQ(Offset(c), 104u) << "into the gap that alignment left";
  resource.deallocate(a, 100, 1);
  EXPECT_EQ(Offset(resource.allocate(105, 4)), 116u) << "the freed gap is too small by one";
  EXPECT_EQ(Offset(resource.allocate(100, 4)), 0u);
  EXPECT_EQ(resource.high_water(), 266u);
}

TEST(RangeResourceTest, EqualCallsGiveEqualAddresses) {
  std::vector<std::uint64_t> first;
  for (int round = 0; round < 2; ++round) {
    RangeResource resource("r", {kBase, 4096});
    std::vector<std::uint64_t> offsets;
    for (int i = 1; i < 9; ++i) {
      void* const kept = resource.allocate(static_cast<std::size_t>(i) * 17, 16);
      void* const gone = resource.allocate(64, 64);
      resource.deallocate(gone, 64, 64);
      offsets.push_back(Offset(kept));
    }
    if (round == 0) first = offsets;
    EXPECT_EQ(offsets, first);
  }
}

TEST(RangeResourceTest, RefusesWhatDoesNotFitNamingSizes) {
  RangeResource resource("sort", {kBase, 1000});
  EXPECT_EQ(Offset(resource.allocate(1000, 1)), 0u);
  try {
    static_cast<void>(resource.allocate(1, 1));
    FAIL() << "there is no room";
  } catch (const std::bad_alloc& e) {
    EXPECT_NE(std::string(e.what()).find("sort"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("1000"), std::string::npos);
  }
  RangeResource empty("empty", AddressRange{kBase, 0});
  EXPECT_THROW(static_cast<void>(empty.allocate(0, 1)), std::bad_alloc);
  RangeResource other("other", {kBase, 1000});
  EXPECT_FALSE(resource.is_equal(other));
  EXPECT_THROW(static_cast<void>(other.allocate(SIZE_MAX / 2, 1)), std::bad_alloc);
}

TEST(RangeResourceTest, ContainersLiveInTheRange) {
  alignas(64) std::byte memory[4096];
  const AddressRange range{{reinterpret_cast<std::uint64_t>(memory)}, sizeof(memory)};
  RangeResource resource("vector", range);
  {
    std::pmr::vector<int> numbers(&resource);
    for (int i = 0; i < 100; ++i) numbers.push_back(i);
    EXPECT_TRUE(range.Contains({reinterpret_cast<std::uint64_t>(numbers.data())}));
    EXPECT_EQ(numbers[99], 99);
  }
  EXPECT_EQ(resource.allocate(sizeof(memory), 1), memory) << "all of it came back";
}

}  // namespace
}  // namespace holdfast
