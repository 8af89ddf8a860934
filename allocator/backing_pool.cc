#include "allocator/backing_pool.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "device/bytes.h"
#include "device/error.h"
#include "device/host_limits.h"

namespace holdfast {
namespace {

constexpr char kObject[] = "backing";

std::uint64_t Less(std::uint64_t a, std::uint64_t b) { return a - std::min(a, b); }
std::uint64_t Plus(std::uint64_t a, std::uint64_t b) {
  return a + std::min(b, std::numeric_limits<std::uint64_t>::max() - a);
}

absl::Status NoRoom(const char* limit, std::uint64_t need, std::uint64_t have) {
  return MakeError({.kind = ErrorKind::kOutOfHostMemory,
                    .object = kObject,
                    .need = need,
                    .have = have,
                    .call = limit},
                   "no room for the backups");
}

}  // namespace

std::shared_ptr<BackingPool> BackingPool::Create(Device& device, BackingPoolOptions options) {
  options.threads = std::max(1, options.threads);
  return std::shared_ptr<BackingPool>(new BackingPool(device, std::move(options)));
}

BackingPool::BackingPool(Device& device, BackingPoolOptions options)
    : device_(device), options_(std::move(options)) {}

BackingPool::~BackingPool() {
  // Orders and buffers keep the pool alive: nothing is queued, and all that is held is idle.
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  work_came_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// -- Room -----------------------------------------------------------------------------------------

absl::StatusOr<BackingPool::Need> BackingPool::Judge(
    const std::vector<std::uint64_t>& sizes) const {
  Need need;
  std::map<std::uint64_t, std::size_t> wanted;
  for (const std::uint64_t bytes : sizes) ++wanted[bytes];
  for (const auto& [bytes, count] : wanted) {
    if (bytes == 0) {
      return MakeError({.kind = ErrorKind::kInvalidArgument, .object = kObject},
                       "a buffer of zero bytes");
    }
    const std::size_t reused = std::min(count, idle_.count(bytes));
    need.reused_bytes += reused * bytes;
    need.fresh_buffers += count - reused;
    HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t fresh,
                              CheckedMultiply(count - reused, bytes, kObject));
    HOLDFAST_ASSIGN_OR_RETURN(need.fresh_bytes, CheckedAdd(need.fresh_bytes, fresh, kObject));
  }
  if (need.fresh_buffers == 0) return need;

  // What is free under each limit as things stand, and with the idle buffers of other sizes too.
  const std::uint64_t spare = idle_bytes_ - need.reused_bytes;
  const std::uint64_t under_cap = Less(options_.cap_bytes, held_bytes_);
  // Read under the lock, so that bytes made meanwhile are not counted as free. Those being made
  // may count twice: near a limit an order beside another may be refused that would just have fit.
  const HostLimits limits = ReadHostLimits(options_.limits_root);
  const std::uint64_t in_system = Less(limits.available_bytes(), unmade_bytes_);
  if (need.fresh_bytes > Plus(under_cap, spare)) {
    return NoRoom("host cap", need.fresh_bytes, Plus(under_cap, spare));
  }
  if (need.fresh_bytes > Plus(in_system, spare)) {
    return NoRoom(limits.binding(), need.fresh_bytes, Plus(in_system, spare));
  }
  need.giveback_bytes = Less(need.fresh_bytes, std::min(under_cap, in_system));
  return need;
}

absl::Status BackingPool::CheckRoom(const std::vector<std::uint64_t>& sizes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Judge(sizes).status();
}

HostBuffer BackingPool::TakeIdle(std::uint64_t bytes) {
  const auto found = idle_.find(bytes);
  if (found == idle_.end()) return {};
  HostBuffer buffer = std::move(found->second);
  idle_.erase(found);
  idle_bytes_ -= bytes;
  return buffer;
}

void BackingPool::PutIdle(HostBuffer buffer) {
  const std::uint64_t bytes = buffer.size();
  idle_.emplace(bytes, std::move(buffer));
  idle_bytes_ += bytes;
}

std::vector<HostBuffer> BackingPool::TakeIdleForGiveback(std::uint64_t least_bytes) {
  std::vector<HostBuffer> away;
  // The largest first: the fewest calls that may wait.
  while (least_bytes > 0 && !idle_.empty()) {
    HostBuffer buffer = TakeIdle(std::prev(idle_.end())->first);
    held_bytes_ -= buffer.size();
    if (buffer.kind() == HostMemoryKind::kPageable) pageable_bytes_ -= buffer.size();
    least_bytes = Less(least_bytes, buffer.size());
    away.push_back(std::move(buffer));
  }
  return away;
}

std::uint64_t BackingPool::Trim() {
  std::vector<HostBuffer> away;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    away = TakeIdleForGiveback(idle_bytes_);
  }
  std::uint64_t bytes = 0;
  for (const HostBuffer& buffer : away) bytes += buffer.size();
  return bytes;
}

std::uint64_t BackingPool::held_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return held_bytes_;
}

std::uint64_t BackingPool::idle_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return idle_bytes_;
}

std::uint64_t BackingPool::pageable_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pageable_bytes_;
}

// -- Orders ---------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<BackingOrder>> BackingPool::Order(std::vector<std::uint64_t> sizes) {
  std::unique_ptr<BackingOrder> order(new BackingOrder(shared_from_this()));
  std::vector<HostBuffer> away;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    HOLDFAST_ASSIGN_OR_RETURN(const Need need, Judge(sizes));
    HOLDFAST_RETURN_IF_ERROR(StartWorkers(need.fresh_buffers));
    // From here on nothing fails.
    for (const std::uint64_t bytes : sizes) {
      HostBuffer idle = TakeIdle(bytes);
      const bool made = idle.data() != nullptr;
      order->items_.push_back(
          {.bytes = bytes,
           .state = made ? BackingOrder::State::kMade : BackingOrder::State::kWaiting,
           .buffer = std::move(idle)});
    }
    order->SkipToWaiting();
    order->unfinished_ = need.fresh_buffers;
    away = TakeIdleForGiveback(need.giveback_bytes);
    held_bytes_ += need.fresh_bytes;
    unmade_bytes_ += need.fresh_bytes;
    unfinished_ += need.fresh_buffers;
  }
  // Before anything is made in their place, and without the lock: it may wait for kernels.
  away.clear();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (order->unfinished_ > 0) {
    queue_.push_back(order.get());
    work_came_.notify_all();
  }
  return order;
}

absl::Status BackingPool::StartWorkers(std::size_t fresh_buffers) {
  const std::size_t wanted =
      std::min(static_cast<std::size_t>(options_.threads), unfinished_ + fresh_buffers);
  try {
    while (workers_.size() < wanted) workers_.emplace_back(&BackingPool::Work, this);
  } catch (const std::system_error& error) {
    // With one thread at least the order is served, only later.
    if (!workers_.empty()) return absl::OkStatus();
    return MakeError({.kind = ErrorKind::kOutOfHostMemory,
                      .object = kObject,
                      .call = "thread",
                      .code = error.code().value()},
                     "no thread to make the buffers");
  }
  return absl::OkStatus();
}

void BackingPool::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    work_came_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (ending_) return;
    BackingOrder& order = *queue_.front();
    const std::size_t i = order.next_;
    order.items_[i].state = BackingOrder::State::kRunning;
    order.SkipToWaiting();
    if (order.next_ == order.items_.size()) queue_.pop_front();
    const std::uint64_t bytes = order.items_[i].bytes;
    lock.unlock();
    absl::StatusOr<HostBuffer> made = Make(bytes);
    lock.lock();
    // The order is still there: its destructor waits for what runs.
    Finish(order, i, std::move(made));
  }
}

absl::StatusOr<HostBuffer> BackingPool::Make(std::uint64_t bytes) {
  absl::StatusOr<HostBuffer> buffer = device_.AllocateHost(bytes);
  if (!buffer.ok() && options_.allow_pageable &&
      IsErrorKind(buffer.status(), ErrorKind::kOutOfHostMemory)) {
    buffer = device_.AllocateHost(bytes, HostMemoryKind::kPageable);
  }
  if (!buffer.ok()) return Annotate(buffer.status(), kObject);
  return buffer;
}

void BackingPool::Finish(BackingOrder& order, std::size_t i, absl::StatusOr<HostBuffer> made) {
  BackingOrder::Item& item = order.items_[i];
  unmade_bytes_ -= item.bytes;
  --unfinished_;
  --order.unfinished_;
  if (made.ok()) {
    item.buffer = *std::move(made);
    item.state = BackingOrder::State::kMade;
    if (item.buffer.kind() == HostMemoryKind::kPageable) pageable_bytes_ += item.bytes;
  } else {
    item.state = BackingOrder::State::kFailed;
    held_bytes_ -= item.bytes;
    CancelWaiting(order, made.status());
  }
  work_went_.notify_all();
}

void BackingPool::CancelWaiting(BackingOrder& order, const absl::Status& error) {
  if (order.error_.ok()) order.error_ = error;
  for (BackingOrder::Item& item : order.items_) {
    if (item.state != BackingOrder::State::kWaiting) continue;
    item.state = BackingOrder::State::kFailed;
    held_bytes_ -= item.bytes;
    unmade_bytes_ -= item.bytes;
    --unfinished_;
    --order.unfinished_;
  }
  order.next_ = order.items_.size();
  queue_.erase(std::remove(queue_.begin(), queue_.end(), &order), queue_.end());
}

void BackingPool::Return(HostBuffer buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  PutIdle(std::move(buffer));
}

void BackingPool::Forget(std::uint64_t bytes, HostMemoryKind kind) {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_bytes_ -= bytes;
  if (kind == HostMemoryKind::kPageable) pageable_bytes_ -= bytes;
}

}  // namespace holdfast
