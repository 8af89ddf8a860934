// An event of the host device: how often it was recorded, and how many of those records have run.
#ifndef HOLDFAST_DEVICE_HOST_HOST_EVENT_H_
#define HOLDFAST_DEVICE_HOST_HOST_EVENT_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"

namespace holdfast {

class HostCapture;

// A place in a capture: what follows the event follows these nodes.
struct CapturedMark {
  std::shared_ptr<HostCapture> capture;  // null: the event was last recorded outside any
  std::vector<std::size_t> frontier;
};

// Shared by the event and by queued work, which may outlive it. Thread-safe.
class EventMarks {
 public:
  // A new record; later waits are for this one.
  std::uint64_t Record();
  // A new record inside a capture: nothing runs, and only Wait may ask for it.
  void RecordCaptured(CapturedMark mark);
  CapturedMark captured() const;
  std::uint64_t recorded() const;
  // Record `mark`, and so every earlier one, has run.
  void Reach(std::uint64_t mark);
  // True once `mark` has run; false if the deadline came first. 0 is reached from the start.
  bool WaitFor(std::uint64_t mark, std::chrono::steady_clock::time_point deadline) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable reached_cv_;
  std::uint64_t recorded_ = 0;
  std::uint64_t reached_ = 0;
  CapturedMark captured_;
};

class HostEvent final : public Event {
 public:
  HostEvent() : marks_(std::make_shared<EventMarks>()) {}
  const std::shared_ptr<EventMarks>& marks() const { return marks_; }

 private:
  std::shared_ptr<EventMarks> marks_;
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_HOST_EVENT_H_
