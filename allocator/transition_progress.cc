#include "allocator/transition_progress.h"

#include <utility>

#include "device/error.h"

namespace holdfast {

void TransitionProgress::Coming(std::vector<AddressRange> pieces) {
  std::lock_guard<std::mutex> lock(mutex_);
  pieces_ = std::move(pieces);
  back_.assign(pieces_.size(), false);
}

void TransitionProgress::Back(std::size_t index) {
  std::lock_guard<std::mutex> lock(mutex_);
  back_[index] = true;
  changed_.notify_all();
}

void TransitionProgress::Published() {
  // Under the mutex, so that a waiter is either before its look at the arena or in its wait.
  std::lock_guard<std::mutex> lock(mutex_);
  changed_.notify_all();
}

void TransitionProgress::Failed(const std::vector<std::string>& tags, const absl::Status& error) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& tag : tags) {
    Failure& failure = failures_[tag];
    ++failure.count;
    failure.last = error;
  }
  changed_.notify_all();
}

bool TransitionProgress::AllBack(AddressRange range) const {
  bool any = false;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const AddressRange& piece = pieces_[i];
    if (piece.end() <= range.base || piece.base >= range.end()) continue;
    if (!back_[i]) return false;
    any = true;
  }
  return any;
}

const TransitionProgress::Failure* TransitionProgress::FindFailure(const std::string& tag) const {
  const auto found = failures_.find(tag);
  return found == failures_.end() ? nullptr : &found->second;
}

absl::Status TransitionProgress::Wait(const std::string& tag, const SpanInfo* span,
                                      Deadline deadline) const {
  std::unique_lock<std::mutex> lock(mutex_);
  const Failure* failure = FindFailure(tag);
  const std::uint64_t failures_before = failure == nullptr ? 0 : failure->count;
  while (true) {
    if (!arena_.asleep(tag)) return absl::OkStatus();
    if (span != nullptr && AllBack(span->range)) return absl::OkStatus();
    failure = FindFailure(tag);
    if (failure != nullptr && failure->count != failures_before) return failure->last;
    if (std::chrono::steady_clock::now() >= deadline) {
      return MakeError(
          {.kind = ErrorKind::kDeadlineExceeded, .object = span == nullptr ? tag : span->spec.name},
          "still asleep");
    }
    // The clock cannot add to the latest time point without wrapping.
    if (deadline == Deadline::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, deadline);
    }
  }
}

absl::Status TransitionProgress::WaitTag(const std::string& tag, Deadline deadline) const {
  return Wait(tag, nullptr, deadline);
}

absl::Status TransitionProgress::WaitSpan(const SpanInfo& span, Deadline deadline) const {
  return Wait(span.spec.tag, &span, deadline);
}

}  // namespace holdfast
