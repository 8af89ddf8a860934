#include "device/host/host_stream.h"

#include <utility>

namespace holdfast {

HostStream::HostStream(std::string name, HostMemory& memory, DeviceLoss& loss)
    : Stream(std::move(name)), memory_(memory), loss_(loss), worker_([this] { RunQueue(); }) {}

HostStream::~HostStream() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    work_arrived_.notify_one();
  }
  worker_.join();
}

absl::Status HostStream::Submit(Work work) {
  HOLDFAST_RETURN_IF_ERROR(loss_.Check());
  std::lock_guard<std::mutex> lock(mutex_);
  switch (mode_) {
    case Mode::kNormal: Enqueue(std::move(work)); break;
    case Mode::kRecording: recorded_.push_back(std::move(work)); break;
    case Mode::kInvalidated: return RefuseInCapture("more work");
  }
  return absl::OkStatus();
}

absl::Status HostStream::SubmitUncapturable(Work work, const std::string& what) {
  HOLDFAST_RETURN_IF_ERROR(loss_.Check());
  std::lock_guard<std::mutex> lock(mutex_);
  if (mode_ != Mode::kNormal) return RefuseInCapture(what);
  Enqueue(std::move(work));
  return absl::OkStatus();
}

void HostStream::Enqueue(Work work) {
  queue_.push_back(std::move(work));
  ++enqueued_;
  work_arrived_.notify_one();
}

absl::Status HostStream::RefuseInCapture(const std::string& what) {
  if (mode_ == Mode::kRecording) {
    mode_ = Mode::kInvalidated;
    invalidated_by_ = what;
  }
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name()},
                   what + " on a stream whose capture it cannot be part of");
}

absl::Status HostStream::WaitUntil(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (mode_ != Mode::kNormal) return RefuseInCapture("synchronize");
  const std::uint64_t target = enqueued_;
  const auto done = [this, target] { return finished_ >= target; };
  // The clock cannot add to the latest time point without wrapping.
  if (deadline == std::chrono::steady_clock::time_point::max()) {
    work_finished_.wait(lock, done);
  } else if (!work_finished_.wait_until(lock, deadline, done)) {
    return MakeError({.kind = ErrorKind::kDeadlineExceeded, .object = name()},
                     "the stream's work is still running");
  }
  return loss_.Check();
}

bool HostStream::IsCapturing() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return mode_ != Mode::kNormal;
}

absl::Status HostStream::BeginCapture() {
  HOLDFAST_RETURN_IF_ERROR(loss_.Check());
  std::lock_guard<std::mutex> lock(mutex_);
  if (mode_ != Mode::kNormal) {
    return MakeError({.kind = ErrorKind::kBusy, .object = name()}, "the stream is capturing");
  }
  mode_ = Mode::kRecording;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Work>> HostStream::EndCapture() {
  std::lock_guard<std::mutex> lock(mutex_);
  const Mode mode = std::exchange(mode_, Mode::kNormal);
  std::vector<Work> recorded = std::exchange(recorded_, {});
  HOLDFAST_RETURN_IF_ERROR(loss_.Check());
  switch (mode) {
    case Mode::kRecording: return recorded;
    case Mode::kInvalidated:
      return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name()},
                       "the capture was invalidated by: " + invalidated_by_);
    case Mode::kNormal: break;
  }
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name()},
                   "the stream is not capturing");
}

void HostStream::RunQueue() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    work_arrived_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;  // stopping, and everything has run
    lock.unlock();
    memory_.EnterExecutor();
    lock.lock();
    bool in_burst = true;
    while (in_burst) {
      {
        const Work work = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        RunWork(work, memory_, loss_);
      }
      lock.lock();
      in_burst = !queue_.empty();
      if (!in_burst) {
        // Closed before the last work counts as finished: see the head of the header.
        lock.unlock();
        memory_.LeaveExecutor();
        lock.lock();
      }
      ++finished_;
      work_finished_.notify_all();
    }
  }
}

}  // namespace holdfast
