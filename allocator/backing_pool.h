// Where kept contents go while their pages are away: host memory of exact sizes, made by several
// threads at once, capped, reused, and given back on request. One pool may serve several
// residencies of one device.
//
//   auto pool = BackingPool::Create(device, {.cap_bytes = 64 * kGiB});
//   ASSIGN(auto order, pool->Order(sizes));           // starts at once, returns at once
//   for (i) { ASSIGN(PooledBuffer room, order->Take(i)); copy into room while i + 1 is made }
//
// A fresh buffer reads zero (Device::AllocateHost); a reused one holds what its last owner left.
// Giving memory back to the system may wait for running kernels (cudaHostUnregister does), so that
// it happens only in Trim, PooledBuffer::Release, an order that needs the room of idle buffers of
// other sizes, and the destruction of the pool.
#ifndef HOLDFAST_ALLOCATOR_BACKING_POOL_H_
#define HOLDFAST_ALLOCATOR_BACKING_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"

namespace holdfast {

class BackingPool;

struct BackingPoolOptions {
  // The most the pool holds at any time: idle, ordered and handed out together.
  std::uint64_t cap_bytes = std::numeric_limits<std::uint64_t>::max();
  // Where the system refuses to pin, take pageable memory: copies run at a fraction of the speed.
  bool allow_pageable = false;
  // Buffers made at once; below 1 counts as 1.
  int threads = 8;
  // Where /proc and /sys are read from (device/host_limits.h); tests give a made-up tree.
  std::string limits_root = "/";
};

// One buffer on loan from a pool: goes back to it, idle, when destroyed. Keeps the pool alive.
// Move-only; empty when default-made, moved from or released.
class PooledBuffer {
 public:
  PooledBuffer() = default;
  PooledBuffer(PooledBuffer&& other) noexcept;
  PooledBuffer& operator=(PooledBuffer&& other) noexcept;
  ~PooledBuffer();

  std::byte* data() const { return buffer_.data(); }
  std::uint64_t size() const { return buffer_.size(); }
  bool pageable() const { return buffer_.kind() == HostMemoryKind::kPageable; }
  explicit operator bool() const { return data() != nullptr; }

  // Gives the memory back to the system instead of to the pool. Empty afterwards.
  void Release();

 private:
  friend class BackingOrder;
  PooledBuffer(std::shared_ptr<BackingPool> pool, HostBuffer buffer)
      : pool_(std::move(pool)), buffer_(std::move(buffer)) {}

  std::shared_ptr<BackingPool> pool_;
  HostBuffer buffer_;
};

// Buffers being made. Keeps the pool alive. Thread-safe, but for destruction. Destruction cancels
// what has not begun, waits for what runs, and leaves what was not taken to the pool as idle.
class BackingOrder {
 public:
  ~BackingOrder();
  BackingOrder(const BackingOrder&) = delete;
  BackingOrder& operator=(const BackingOrder&) = delete;

  std::size_t size() const { return items_.size(); }
  // Waits for buffer `i` and hands it out; each once (kInvalidArgument the second time, or beyond
  // the end). Its error if it could not be made: a failure cancels all that have not begun, which
  // then fail with the same error.
  absl::StatusOr<PooledBuffer> Take(std::size_t i);
  // True once Take(i) would not wait.
  bool ready(std::size_t i) const;
  // Waits until every buffer is made or has failed. The first error, or OK; what was made stays to
  // be taken.
  absl::Status Wait();

 private:
  friend class BackingPool;
  enum class State { kWaiting, kRunning, kMade, kTaken, kFailed };
  struct Item {
    std::uint64_t bytes = 0;
    State state = State::kWaiting;
    HostBuffer buffer;
  };
  explicit BackingOrder(std::shared_ptr<BackingPool> pool) : pool_(std::move(pool)) {}

  static bool Done(const Item& item) {
    return item.state != State::kWaiting && item.state != State::kRunning;
  }
  // Moves next_ on to the next item that waits, or the end.
  void SkipToWaiting();

  const std::shared_ptr<BackingPool> pool_;
  // Guarded by the pool's mutex.
  std::vector<Item> items_;
  std::size_t next_ = 0;        // no item before it waits: they begin in order
  std::size_t unfinished_ = 0;  // items that wait or run
  absl::Status error_;          // the first failure
};

// Thread-safe. `device` must outlive the pool, its orders and its buffers.
class BackingPool : public std::enable_shared_from_this<BackingPool> {
 public:
  static std::shared_ptr<BackingPool> Create(Device& device, BackingPoolOptions options = {});
  ~BackingPool();
  BackingPool(const BackingPool&) = delete;
  BackingPool& operator=(const BackingPool&) = delete;

  // Whether buffers of `sizes` can be had: idle ones of the same size count as there, idle ones of
  // other sizes as room that can be given back. kOutOfHostMemory with need and have, `call` naming
  // the limit that binds: "host cap", "cgroup memory limit" or "machine". Allocates nothing.
  absl::Status CheckRoom(const std::vector<std::uint64_t>& sizes) const;

  // Judges as CheckRoom does and sets the bytes aside, then has the buffers made, in the order
  // given; earlier orders first. Returns without waiting for any. Idle ones of the same size are
  // taken first; where the cap, a cgroup or the machine is short, idle ones of other sizes are
  // given back before, which is waited for. On error nothing changed. kInvalidArgument for a size
  // of zero.
  absl::StatusOr<std::unique_ptr<BackingOrder>> Order(std::vector<std::uint64_t> sizes);

  // Gives idle buffers back to the system; returns their bytes.
  std::uint64_t Trim();

  std::uint64_t held_bytes() const;      // idle, ordered and handed out
  std::uint64_t idle_bytes() const;      // of the held, waiting for an owner
  std::uint64_t pageable_bytes() const;  // of the held, made and not pinned
  const BackingPoolOptions& options() const { return options_; }

 private:
  friend class BackingOrder;
  friend class PooledBuffer;

  // What an order of some sizes asks for beyond the idle buffers it can use.
  struct Need {
    std::uint64_t fresh_bytes = 0;
    std::size_t fresh_buffers = 0;
    std::uint64_t reused_bytes = 0;
    std::uint64_t giveback_bytes = 0;  // of idle buffers of other sizes, to make room
  };

  BackingPool(Device& device, BackingPoolOptions options);

  // These want mutex_ held.
  absl::StatusOr<Need> Judge(const std::vector<std::uint64_t>& sizes) const;
  absl::Status StartWorkers(std::size_t fresh_buffers);
  HostBuffer TakeIdle(std::uint64_t bytes);
  std::vector<HostBuffer> TakeIdleForGiveback(std::uint64_t least_bytes);
  void PutIdle(HostBuffer buffer);
  void CancelWaiting(BackingOrder& order, const absl::Status& error);
  void Finish(BackingOrder& order, std::size_t i, absl::StatusOr<HostBuffer> made);

  // These take it.
  void Work();
  void Return(HostBuffer buffer);
  void Forget(std::uint64_t bytes, HostMemoryKind kind);

  absl::StatusOr<HostBuffer> Make(std::uint64_t bytes);

  Device& device_;
  const BackingPoolOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable work_came_;  // an order was queued, or the pool ends
  std::condition_variable work_went_;  // an item was made or failed
  // Guarded by mutex_.
  std::multimap<std::uint64_t, HostBuffer> idle_;  // by size
  std::deque<BackingOrder*> queue_;                // orders with items that wait
  std::vector<std::thread> workers_;               // started when first needed
  std::size_t unfinished_ = 0;                     // items that wait or run, of all orders
  std::uint64_t unmade_bytes_ = 0;                 // of these; the system does not count them yet
  std::uint64_t held_bytes_ = 0;
  std::uint64_t idle_bytes_ = 0;
  std::uint64_t pageable_bytes_ = 0;
  bool ending_ = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_BACKING_POOL_H_
