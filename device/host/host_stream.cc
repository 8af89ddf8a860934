#include "device/host/host_stream.h"

#include <utility>

namespace holdfast {

HostStream::HostStream(std::string name, HostMemory& memory, DeviceLoss& loss)
    : Stream(std::move(name)), memory_(memory), loss_(loss), worker_([this] { RunQueue(); }) {}

HostStream::~HostStream() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (Capturing()) capture_->Spoil(name(), "the end of a stream").IgnoreError();
    stopping_ = true;
    work_arrived_.notify_one();
  }
  worker_.join();
}

absl::Status HostStream::Submit(Work work) {
  HOLDFAST_RETURN_IF_ERROR(loss_.Check());
  std::lock_guard<std::mutex> lock(mutex_);
  if (Capturing()) return capture_->Append(name(), frontier_, std::move(work));
  Enqueue(std::move(work));
  return absl::OkStatus();
}

absl::Status HostStream::SubmitUncapturable(Work work, const std::string& what) {
  HOLDFAST_RETURN_IF_ERROR(loss_.Check());
  std::lock_guard<std::mutex> lock(mutex_);
  if (Capturing()) return capture_->Spoil(name(), what);
  Enqueue(std::move(work));
  return absl::OkStatus();
}

absl::Status HostStream::Record(const std::shared_ptr<EventMarks>& marks) {
  HOLDFAST_RETURN_IF_ERROR(loss_.Check());
  std::lock_guard<std::mutex> lock(mutex_);
  if (Capturing()) {
    marks->RecordCaptured({.capture = capture_, .frontier = frontier_});
  } else {
    Enqueue(RecordWork{marks, marks->Record()});
  }
  return absl::OkStatus();
}

absl::Status HostStream::Wait(const std::shared_ptr<EventMarks>& marks) {
  HOLDFAST_RETURN_IF_ERROR(loss_.Check());
  const CapturedMark mark = marks->captured();
  std::lock_guard<std::mutex> lock(mutex_);
  if (mark.capture == nullptr) {
    if (Capturing()) return capture_->Spoil(name(), "a wait for an event outside the capture");
    Enqueue(WaitWork{marks, marks->recorded()});
    return absl::OkStatus();
  }
  if (Capturing() && capture_ != mark.capture) {
    mark.capture->Spoil(name(), "a wait of a stream in another capture").IgnoreError();
    return capture_->Spoil(name(), "a wait for an event of another capture");
  }
  if (mark.capture->ended()) {
    return MakeError({.kind = ErrorKind::kUncapturable, .object = name(), .call = "wait event"},
                     "the event marks a place in a capture that has ended");
  }
  if (!Capturing()) {  // drawn in
    capture_ = mark.capture;
    began_ = false;
    frontier_.clear();
  }
  HostCapture::Merge(frontier_, mark.frontier);
  return absl::OkStatus();
}

void HostStream::Enqueue(Work work) {
  queue_.push_back(std::move(work));
  ++enqueued_;
  work_arrived_.notify_one();
}

absl::Status HostStream::WaitUntil(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (Capturing()) return capture_->Spoil(name(), "synchronize");
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
  return Capturing();
}

absl::Status HostStream::BeginCapture() {
  HOLDFAST_RETURN_IF_ERROR(loss_.Check());
  std::lock_guard<std::mutex> lock(mutex_);
  if (Capturing()) {
    return MakeError({.kind = ErrorKind::kBusy, .object = name()}, "the stream is capturing");
  }
  capture_ = std::make_shared<HostCapture>();
  began_ = true;
  frontier_.clear();
  return absl::OkStatus();
}

absl::StatusOr<RecordedGraph> HostStream::EndCapture() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!Capturing() || !began_) {
    return MakeError(
        {.kind = ErrorKind::kInvalidArgument, .object = name()},
        Capturing() ? "another stream began the capture" : "the stream is not capturing");
  }
  const std::shared_ptr<HostCapture> capture = std::exchange(capture_, nullptr);
  absl::StatusOr<RecordedGraph> graph = capture->End(name(), frontier_);
  HOLDFAST_RETURN_IF_ERROR(loss_.Check());
  return graph;
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
