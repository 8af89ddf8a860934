// Verifies that orders survive failures at every call, cancellation, and each other.
#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "allocator/backing_pool.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

using Sizes = std::vector<std::uint64_t>;

class BackingPoolFaults : public testing::TestWithParam<int> {
 protected:
  int threads() const { return GetParam(); }
  std::unique_ptr<Device> device_ = TestDevice();
};

INSTANTIATE_TEST_SUITE_P(Threads, BackingPoolFaults, testing::Values(1, 4));

// For every k: the error comes out, what was made stays usable or idle, nothing leaks, and the same
// order passes afterwards.
TEST_P(BackingPoolFaults, FailureOfAnyAllocationIsAnErrorAndLosesNothing) {
  const Sizes sizes = {1000, 2000, 3000, 4000, 5000, 6000};
  const std::uint64_t total = 21000;
  for (std::uint64_t k = 1; k <= sizes.size() + 1; ++k) {
    auto pool = BackingPool::Create(*device_, {.cap_bytes = total, .threads = threads()});
    device_->calls().FailAt(k, {Call::kAllocateHost});
    ASSERT_OK_AND_ASSIGN(auto order, pool->Order(sizes));
    const absl::Status result = order->Wait();
    const bool fired = device_->calls().Disarm();
    EXPECT_EQ(fired, k <= sizes.size());
    EXPECT_EQ(result.ok(), !fired);
    std::uint64_t made = 0;
    {
      std::vector<PooledBuffer> taken;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_TRUE(order->ready(i));
        absl::StatusOr<PooledBuffer> buffer = order->Take(i);
        if (buffer.ok()) {
          made += buffer->size();
          taken.push_back(*std::move(buffer));
        } else {
          EXPECT_EQ(buffer.status(), result) << "every one that is missing says why";
        }
      }
      EXPECT_EQ(taken.size() == sizes.size(), !fired);
      if (threads() == 1 && fired) {
        EXPECT_EQ(taken.size(), k - 1) << "later ones never began";
      }
      EXPECT_EQ(pool->held_bytes(), made) << k;
    }
    if (fired) {
      EXPECT_THAT(result, IsErrorKind(ErrorKind::kDriver));
      EXPECT_EQ(GetErrorInfo(result)->call, "allocate host");
    }
    EXPECT_EQ(pool->idle_bytes(), made);
    // Again, within the same cap: what was set aside for the failed ones is free.
    ASSERT_OK_AND_ASSIGN(order, pool->Order(sizes));
    EXPECT_OK(order->Wait());
    EXPECT_EQ(pool->held_bytes(), total);
  }
  EXPECT_TRUE(device_->calls().Balanced());
}

// Only lack of memory is answered with pageable memory.
TEST_P(BackingPoolFaults, OtherFailuresAreNotAnsweredWithPageableMemory) {
  auto pool = BackingPool::Create(*device_, {.allow_pageable = true, .threads = threads()});
  device_->calls().FailAt(1, {Call::kAllocateHost});
  ASSERT_OK_AND_ASSIGN(auto order, pool->Order({1000}));
  EXPECT_THAT(order->Wait(), IsErrorKind(ErrorKind::kDriver));
  EXPECT_TRUE(device_->calls().Disarm());
  EXPECT_EQ(pool->pageable_bytes(), 0u);
}

TEST_P(BackingPoolFaults, AnAbandonedOrderLeavesWhatItMadeAsIdle) {
  auto pool = BackingPool::Create(*device_, {.threads = threads()});
  for (int round = 0; round < 20; ++round) {
    const Sizes sizes(50, 4096 + static_cast<std::uint64_t>(round));
    ASSERT_OK_AND_ASSIGN(auto order, pool->Order(sizes));
    PooledBuffer one;
    if (round % 2 == 1) {
      ASSERT_OK_AND_ASSIGN(one, order->Take(0));
    }
    order = nullptr;
    // Nothing is set aside any more, and nothing runs.
    EXPECT_EQ(pool->held_bytes(), pool->idle_bytes() + one.size());
    EXPECT_EQ(pool->idle_bytes() % sizes[0], 0u);
    one = PooledBuffer();
    pool->Trim();
    EXPECT_EQ(pool->held_bytes(), 0u);
  }
  EXPECT_TRUE(device_->calls().Balanced());
}

// A failing order takes no other with it.
TEST_P(BackingPoolFaults, AFailureStaysInItsOrder) {
  auto pool = BackingPool::Create(*device_, {.threads = threads()});
  device_->calls().FailAt(1, {Call::kAllocateHost});
  ASSERT_OK_AND_ASSIGN(const auto first, pool->Order(Sizes(20, 1000)));
  EXPECT_FALSE(first->Wait().ok());
  ASSERT_OK_AND_ASSIGN(const auto second, pool->Order(Sizes(20, 2000)));
  EXPECT_OK(second->Wait());
  EXPECT_TRUE(device_->calls().Disarm());
}

// Orders, takes, returns, releases, trims and failures from several threads: no buffer has two
// owners, and the books agree at the end.
TEST_P(BackingPoolFaults, ConcurrentOrdersShareThePool) {
  auto pool = BackingPool::Create(*device_, {.cap_bytes = 4'000'000, .threads = threads()});
  std::atomic<int> refused{0};
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int round = 0; round < 60; ++round) {
      Sizes sizes(1 + random() % 12);
      for (std::uint64_t& size : sizes) size = 1000 * (1 + random() % 8);
      auto order = pool->Order(sizes);
      if (!order.ok()) {
        ++refused;
        continue;
      }
      std::vector<PooledBuffer> taken;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (random() % 4 == 0) continue;
        absl::StatusOr<PooledBuffer> buffer = (*order)->Take(i);
        ASSERT_THAT(buffer, IsOk());
        ASSERT_EQ(buffer->size(), sizes[i]);
        std::fill_n(buffer->data(), buffer->size(), std::byte(seed));
        taken.push_back(*std::move(buffer));
      }
      if (random() % 8 == 0) pool->Trim();
      EXPECT_LE(pool->held_bytes(), pool->options().cap_bytes);
      for (PooledBuffer& buffer : taken) {
        EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + buffer.size(),
                                [seed](std::byte byte) { return byte == std::byte(seed); }));
        if (random() % 4 == 0) buffer.Release();
      }
    }
  };
  std::vector<std::thread> workers;
  for (unsigned seed = 1; seed <= 4; ++seed) workers.emplace_back(work, seed);
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(refused.load(), 0);
  EXPECT_EQ(pool->held_bytes(), pool->idle_bytes());
  pool->Trim();
  EXPECT_EQ(pool->held_bytes(), 0u);
  EXPECT_TRUE(device_->calls().Balanced());
}

TEST_P(BackingPoolFaults, BuffersMayBeTakenInAnyOrder) {
  auto pool = BackingPool::Create(*device_, {.threads = threads()});
  std::set<std::byte*> distinct;
  ASSERT_OK_AND_ASSIGN(auto order, pool->Order(Sizes(64, 4096)));
  std::vector<PooledBuffer> taken;
  for (std::size_t i = 64; i-- > 0;) {
    ASSERT_OK_AND_ASSIGN(PooledBuffer buffer, order->Take(i));
    distinct.insert(buffer.data());
    taken.push_back(std::move(buffer));
  }
  EXPECT_EQ(distinct.size(), 64u);
}

}  // namespace
}  // namespace holdfast
