// The two ends of an order: buffers as they are taken, and as they come back.
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/backing_pool.h"
#include "device/error.h"

namespace holdfast {
namespace {

absl::Status Invalid(std::size_t i, const char* message) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "backing"},
                   absl::StrCat("buffer ", i, " ", message));
}

}  // namespace

BackingOrder::~BackingOrder() {
  std::unique_lock<std::mutex> lock(pool_->mutex_);
  pool_->CancelWaiting(*this, absl::CancelledError());
  pool_->work_went_.wait(lock, [this] { return unfinished_ == 0; });
  for (Item& item : items_) {
    if (item.state == State::kMade) pool_->PutIdle(std::move(item.buffer));
  }
}

void BackingOrder::SkipToWaiting() {
  while (next_ < items_.size() && items_[next_].state != State::kWaiting) ++next_;
}

absl::StatusOr<PooledBuffer> BackingOrder::Take(std::size_t i) {
  std::unique_lock<std::mutex> lock(pool_->mutex_);
  if (i >= items_.size()) return Invalid(i, "was not ordered");
  Item& item = items_[i];
  pool_->work_went_.wait(lock, [&item] { return Done(item); });
  if (item.state == State::kTaken) return Invalid(i, "was taken already");
  if (item.state == State::kFailed) return error_;
  item.state = State::kTaken;
  return PooledBuffer(pool_, std::move(item.buffer));
}

bool BackingOrder::ready(std::size_t i) const {
  const std::lock_guard<std::mutex> lock(pool_->mutex_);
  return i >= items_.size() || Done(items_[i]);
}

absl::Status BackingOrder::Wait() {
  std::unique_lock<std::mutex> lock(pool_->mutex_);
  pool_->work_went_.wait(lock, [this] { return unfinished_ == 0; });
  return error_;
}

PooledBuffer::PooledBuffer(PooledBuffer&& other) noexcept = default;

PooledBuffer& PooledBuffer::operator=(PooledBuffer&& other) noexcept {
  // The old buffer goes back when `taken` does.
  PooledBuffer taken(std::move(other));
  std::swap(pool_, taken.pool_);
  std::swap(buffer_, taken.buffer_);
  return *this;
}

PooledBuffer::~PooledBuffer() {
  if (buffer_.data() != nullptr) pool_->Return(std::move(buffer_));
}

void PooledBuffer::Release() {
  if (buffer_.data() == nullptr) return;
  const std::shared_ptr<BackingPool> pool = std::move(pool_);
  const std::uint64_t bytes = size();
  const HostMemoryKind kind = buffer_.kind();
  buffer_ = HostBuffer();
  pool->Forget(bytes, kind);
}

}  // namespace holdfast
