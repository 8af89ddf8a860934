// Verifies that the pool holds exact bytes, reuses and trims them, and refuses before anything is
// allocated what the cap, a cgroup, the machine or the pin limit does not allow.
#include "allocator/backing_pool.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include "device/bytes.h"
#include "gtest/gtest.h"
#include "tests/device/limits_root.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

using Sizes = std::vector<std::uint64_t>;

std::vector<PooledBuffer> TakeAll(BackingPool& pool, const Sizes& sizes) {
  std::vector<PooledBuffer> taken;
  auto order = pool.Order(sizes);
  EXPECT_THAT(order, IsOk());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto buffer = (*order)->Take(i);
    EXPECT_THAT(buffer, IsOk());
    EXPECT_EQ(buffer->size(), sizes[i]);
    taken.push_back(*std::move(buffer));
  }
  return taken;
}

// A refusal that names the limit, with the sizes, and allocated nothing.
void ExpectRefused(Device& device, BackingPool& pool, const Sizes& sizes, const std::string& limit,
                   std::uint64_t need, std::uint64_t have) {
  const std::uint64_t calls = device.calls().succeeded(Call::kAllocateHost);
  const std::uint64_t held = pool.held_bytes();
  for (const absl::Status& status : {pool.CheckRoom(sizes), pool.Order(sizes).status()}) {
    ASSERT_THAT(status, IsErrorKind(ErrorKind::kOutOfHostMemory));
    EXPECT_EQ(GetErrorInfo(status)->call, limit);
    EXPECT_EQ(GetErrorInfo(status)->need, need);
    EXPECT_EQ(GetErrorInfo(status)->have, have);
  }
  EXPECT_EQ(device.calls().succeeded(Call::kAllocateHost), calls);
  EXPECT_EQ(pool.held_bytes(), held);
}

TEST(BackingPoolTest, BuffersAreExactFreshOnesZeroAndAllAreGivenBack) {
  auto device = TestDevice();
  {
    auto pool = BackingPool::Create(*device);
    const std::vector<PooledBuffer> taken = TakeAll(*pool, {1000, 3 * kMiB + 1, 1});
    EXPECT_EQ(pool->held_bytes(), 1000 + 3 * kMiB + 1 + 1);
    EXPECT_EQ(pool->idle_bytes(), 0u);
    for (const PooledBuffer& buffer : taken) {
      EXPECT_FALSE(buffer.pageable());
      for (std::uint64_t i = 0; i < buffer.size(); ++i) ASSERT_EQ(buffer.data()[i], std::byte{0});
    }
  }
  EXPECT_EQ(device->calls().succeeded(Call::kAllocateHost), 3u);
  EXPECT_TRUE(device->calls().Balanced());
}

TEST(BackingPoolTest, ReturnedBuffersServeTheNextOrderOfTheirSize) {
  auto device = TestDevice();
  auto pool = BackingPool::Create(*device);
  std::set<std::byte*> first;
  for (const PooledBuffer& buffer : TakeAll(*pool, {5000, 5000, 7000})) {
    first.insert(buffer.data());
    std::memset(buffer.data(), 0x5a, buffer.size());
  }
  EXPECT_EQ(pool->idle_bytes(), 17000u);
  ASSERT_OK_AND_ASSIGN(auto order, pool->Order({5000, 7000, 5000, 5000}));
  EXPECT_TRUE(order->ready(0) && order->ready(1) && order->ready(2));
  EXPECT_EQ(pool->held_bytes(), 22000u);
  for (const std::size_t i : {0, 1, 2}) {
    ASSERT_OK_AND_ASSIGN(const PooledBuffer buffer, order->Take(i));
    EXPECT_EQ(first.erase(buffer.data()), 1u);
    EXPECT_EQ(buffer.data()[17], std::byte{0x5a}) << "what its last owner left";
  }
  EXPECT_OK(order->Wait());
  EXPECT_EQ(device->calls().succeeded(Call::kAllocateHost), 4u);
}

TEST(BackingPoolTest, ReleaseAndTrimGiveMemoryBack) {
  auto device = TestDevice();
  auto pool = BackingPool::Create(*device);
  std::vector<PooledBuffer> taken = TakeAll(*pool, {1000, 2000, 4000});
  taken[0].Release();
  EXPECT_FALSE(taken[0]);
  taken[0].Release();
  EXPECT_EQ(pool->held_bytes(), 6000u);
  EXPECT_EQ(device->calls().succeeded(Call::kFreeHost), 1u);
  EXPECT_EQ(pool->Trim(), 0u) << "nothing is idle";
  taken[1] = PooledBuffer();
  EXPECT_EQ(pool->idle_bytes(), 2000u);
  EXPECT_EQ(pool->Trim(), 2000u);
  EXPECT_EQ(pool->held_bytes(), 4000u);
  PooledBuffer moved = std::move(taken[2]);
  taken.clear();
  EXPECT_EQ(pool->idle_bytes(), 0u);
  EXPECT_EQ(pool->held_bytes(), 4000u);
}

TEST(BackingPoolTest, ABufferKeepsItsPoolAlive) {
  auto device = TestDevice();
  PooledBuffer last;
  {
    auto pool = BackingPool::Create(*device);
    ASSERT_OK_AND_ASSIGN(auto order, pool->Order({4096, 4096}));
    pool = nullptr;
    ASSERT_OK_AND_ASSIGN(last, order->Take(1));
  }
  std::memset(last.data(), 1, last.size());
  last = PooledBuffer();
  EXPECT_TRUE(device->calls().Balanced());
  EXPECT_EQ(device->calls().succeeded(Call::kFreeHost), 2u);
}

TEST(BackingPoolTest, EachBufferIsTakenOnce) {
  auto device = TestDevice();
  auto pool = BackingPool::Create(*device, {.threads = -3});
  ASSERT_OK_AND_ASSIGN(auto order, pool->Order({10, 20}));
  EXPECT_EQ(order->size(), 2u);
  EXPECT_OK(order->Take(1));
  EXPECT_THAT(order->Take(1), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(order->Take(2), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_OK(order->Take(0));
  ASSERT_OK_AND_ASSIGN(const auto empty, pool->Order({}));
  EXPECT_OK(empty->Wait());
  EXPECT_THAT(pool->Order({1, 0}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(pool->CheckRoom({UINT64_MAX, 2}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(pool->held_bytes(), 30u);
}

TEST(BackingPoolTest, TheCapCountsIdleOrderedAndHandedOut) {
  auto device = TestDevice();
  auto pool = BackingPool::Create(*device, {.cap_bytes = 10000});
  ExpectRefused(*device, *pool, {4000, 4000, 2001}, "host cap", 10001, 10000);
  std::vector<PooledBuffer> taken = TakeAll(*pool, {4000, 4000});
  ExpectRefused(*device, *pool, {2001}, "host cap", 2001, 2000);
  EXPECT_OK(pool->CheckRoom({2000}));
  taken[0] = PooledBuffer();
  // What is idle is there for its own size, and makes room for others.
  EXPECT_OK(pool->CheckRoom({4000, 2000}));
  ExpectRefused(*device, *pool, {4000, 2001}, "host cap", 2001, 2000);
  ExpectRefused(*device, *pool, {6001}, "host cap", 6001, 6000);
  EXPECT_EQ(device->calls().succeeded(Call::kFreeHost), 0u);
  const std::vector<PooledBuffer> larger = TakeAll(*pool, {6000});
  EXPECT_EQ(device->calls().succeeded(Call::kFreeHost), 1u);
  EXPECT_EQ(pool->held_bytes(), 10000u);
}

TEST(BackingPoolTest, IdleBuffersStayWhereThereIsRoom) {
  auto device = TestDevice();
  auto pool = BackingPool::Create(*device, {.cap_bytes = 10000});
  TakeAll(*pool, {3000, 1000});
  const std::vector<PooledBuffer> taken = TakeAll(*pool, {6000});
  EXPECT_EQ(pool->idle_bytes(), 4000u);
  EXPECT_EQ(device->calls().succeeded(Call::kFreeHost), 0u);
}

TEST(BackingPoolTest, MachineAndCgroupAreJudgedBeforeAnythingMoves) {
  auto device = TestDevice();
  const LimitsRoot root;
  root.MachineAvailable(100);  // KiB
  auto pool = BackingPool::Create(*device, {.limits_root = root.path()});
  ExpectRefused(*device, *pool, {60 * kKiB, 60 * kKiB}, "machine", 120 * kKiB, 100 * kKiB);
  root.Version2("/a/b");
  root.Level2("/a", "80000", "30000");
  root.Level2("/a/b", "max", "30000");
  ExpectRefused(*device, *pool, {50001}, "cgroup memory limit", 50001, 50000);
  std::vector<PooledBuffer> taken = TakeAll(*pool, {50000});
  // The made-up system does not count it. Idle buffers of other sizes are room, too.
  ExpectRefused(*device, *pool, {50001}, "cgroup memory limit", 50001, 50000);
  taken.clear();
  ExpectRefused(*device, *pool, {100001}, "cgroup memory limit", 100001, 100000);
  EXPECT_OK(pool->CheckRoom({50001}));
  // Negative control: without the limits the same orders pass.
  auto free = BackingPool::Create(*device);
  EXPECT_OK(free->CheckRoom({60 * kKiB, 60 * kKiB}));
}

TEST(BackingPoolTest, AnOrderBehindAnotherMayNotHaveItsBytes) {
  auto device = TestDevice();
  auto pool = BackingPool::Create(*device, {.cap_bytes = 10000});
  ASSERT_OK_AND_ASSIGN(const auto first, pool->Order({6000}));
  EXPECT_THAT(pool->Order({4001}), IsErrorKind(ErrorKind::kOutOfHostMemory));
  EXPECT_OK(pool->Order({4000}));
}

// Field case 34: 8 regions of 65 MiB cost 520 MiB and a page each, not 1 GiB.
std::uint64_t StatusBytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::uint64_t kib = 0;
    if (word == key && file >> kib) return kib * kKiB;
  }
  ADD_FAILURE() << "no " << key;
  return 0;
}

TEST(BackingPoolTest, NoBufferIsRoundedUpToAPowerOfTwo) {
  auto device = TestDevice();
  auto pool = BackingPool::Create(*device, {.threads = 2});
  const std::uint64_t resident = StatusBytes("RssAnon:");
  const std::uint64_t data = StatusBytes("VmData:");
  const std::vector<PooledBuffer> taken = TakeAll(*pool, Sizes(8, 65 * kMiB));
  EXPECT_EQ(pool->held_bytes(), 520 * kMiB);
  // One write a page makes it resident.
  for (const PooledBuffer& buffer : taken) {
    for (std::uint64_t at = 0; at < buffer.size(); at += 4096) buffer.data()[at] = std::byte{1};
  }
  // Beside the buffers: the threads' stacks and arenas, and what a GPU's driver keeps of them.
  EXPECT_GE(StatusBytes("RssAnon:"), resident + 519 * kMiB);
  EXPECT_LE(StatusBytes("RssAnon:"), resident + 536 * kMiB);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(StatusBytes("VmData:"), data + (520 + 200) * kMiB);
#else
  static_cast<void>(data);
#endif
}

// The other half of field case 34.
TEST(BackingPoolTest, APinLimitRefusesOrIsTakenPageableIfChosen) {
  auto device = TestHostDevice({.host_pin_limit_bytes = 256 * kMiB});
  const Sizes sizes(8, 65 * kMiB);
  {
    auto pool = BackingPool::Create(*device);
    ASSERT_OK_AND_ASSIGN(const auto order, pool->Order(sizes));
    const absl::Status refused = order->Wait();
    EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfHostMemory));
    EXPECT_EQ(GetErrorInfo(refused)->call, "pin");
    EXPECT_EQ(pool->pageable_bytes(), 0u);
    EXPECT_LE(pool->held_bytes(), 256 * kMiB);
  }
  EXPECT_TRUE(device->calls().Balanced());
  auto pool = BackingPool::Create(*device, {.allow_pageable = true});
  {
    const std::vector<PooledBuffer> taken = TakeAll(*pool, sizes);
    EXPECT_EQ(pool->held_bytes(), 520 * kMiB);
    EXPECT_EQ(pool->pageable_bytes(), 5 * 65 * kMiB);
    EXPECT_EQ(std::count_if(taken.begin(), taken.end(),
                            [](const PooledBuffer& buffer) { return buffer.pageable(); }),
              5);
  }
  EXPECT_EQ(pool->pageable_bytes(), 5 * 65 * kMiB) << "idle now";
  EXPECT_EQ(pool->Trim(), 520 * kMiB);
  EXPECT_EQ(pool->pageable_bytes(), 0u);
  EXPECT_TRUE(device->calls().Balanced());
}

}  // namespace
}  // namespace holdfast
