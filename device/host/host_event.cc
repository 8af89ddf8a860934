#include "device/host/host_event.h"

#include <algorithm>
#include <utility>

namespace holdfast {

std::uint64_t EventMarks::Record() {
  std::lock_guard<std::mutex> lock(mutex_);
  captured_ = {};
  return ++recorded_;
}

void EventMarks::RecordCaptured(CapturedMark mark) {
  std::lock_guard<std::mutex> lock(mutex_);
  captured_ = std::move(mark);
}

CapturedMark EventMarks::captured() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return captured_;
}

std::uint64_t EventMarks::recorded() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return recorded_;
}

void EventMarks::Reach(std::uint64_t mark) {
  std::lock_guard<std::mutex> lock(mutex_);
  reached_ = std::max(reached_, mark);
  reached_cv_.notify_all();
}

bool EventMarks::WaitFor(std::uint64_t mark, std::chrono::steady_clock::time_point deadline) const {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto reached = [this, mark] { return reached_ >= mark; };
  // The clock cannot add to the latest time point without wrapping.
  if (deadline == std::chrono::steady_clock::time_point::max()) {
    reached_cv_.wait(lock, reached);
    return true;
  }
  return reached_cv_.wait_until(lock, deadline, reached);
}

}  // namespace holdfast
