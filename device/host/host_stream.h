// A stream of the host device: a queue, a worker thread that runs it in order, and a recorder.
//
//   normal --BeginCapture, or a wait for an event of a capture--> capturing --its end--> normal
//
// The worker is an executor of the memory from the first work of a burst to its last: the windows
// open and close once a burst. Whoever waited for the last work of a burst finds them closed.
#ifndef HOLDFAST_DEVICE_HOST_HOST_STREAM_H_
#define HOLDFAST_DEVICE_HOST_HOST_STREAM_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"
#include "device/host/host_capture.h"
#include "device/host/work.h"

namespace holdfast {

class HostStream final : public Stream {
 public:
  HostStream(std::string name, HostMemory& memory, DeviceLoss& loss);
  ~HostStream() override;  // runs what is queued, then ends the worker

  bool BelongsTo(const HostMemory& memory) const { return &memory_ == &memory; }

  // Queues or records. kDeviceLost; kUncapturable in a capture that is spoiled.
  absl::Status Submit(Work work);
  // Work that no graph can hold: refused, and the capture spoiled, while capturing.
  absl::Status SubmitUncapturable(Work work, const std::string& what);
  absl::Status Record(const std::shared_ptr<EventMarks>& marks);
  // kUncapturable where one side is in a capture and the other is in none or in another; both
  // captures are then spoiled.
  absl::Status Wait(const std::shared_ptr<EventMarks>& marks);
  absl::Status WaitUntil(std::chrono::steady_clock::time_point deadline);

  // True from the beginning of a capture it takes part in to that capture's end.
  bool IsCapturing() const;
  absl::Status BeginCapture();
  // kInvalidArgument if it did not begin one.
  absl::StatusOr<RecordedGraph> EndCapture();

 private:
  void RunQueue();
  // With mutex_ held:
  bool Capturing() const { return capture_ != nullptr && !capture_->ended(); }
  void Enqueue(Work work);

  HostMemory& memory_;
  DeviceLoss& loss_;

  mutable std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::condition_variable work_finished_;
  std::deque<Work> queue_;
  std::uint64_t enqueued_ = 0;
  std::uint64_t finished_ = 0;
  bool stopping_ = false;
  std::shared_ptr<HostCapture> capture_;  // over once it has ended
  bool began_ = false;                    // this stream began capture_
  HostCapture::Frontier frontier_;        // what the next node of this stream follows

  std::thread worker_;  // last: it uses all of the above
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_HOST_STREAM_H_
