// A stream of the host device: a queue, a worker thread that runs it in order, and a recorder.
//
//   normal  --BeginCapture-->  recording  --EndCapture-->  normal
//                                  |  a call that cannot be recorded
//                                  v
//                              invalidated  --EndCapture (an error)-->  normal
//
// The worker is an executor of the memory from the first work of a burst to its last: the windows
// open and close once a burst. Whoever waited for the last work of a burst finds them closed.
#ifndef HOLDFAST_DEVICE_HOST_HOST_STREAM_H_
#define HOLDFAST_DEVICE_HOST_HOST_STREAM_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"
#include "device/host/work.h"

namespace holdfast {

class HostStream final : public Stream {
 public:
  HostStream(std::string name, HostMemory& memory, DeviceLoss& loss);
  ~HostStream() override;  // runs what is queued, then ends the worker

  bool BelongsTo(const HostMemory& memory) const { return &memory_ == &memory; }

  // Queues or records. Errors: device lost, capture invalidated.
  absl::Status Submit(Work work);
  // Work that no graph can hold: refused, and the capture invalidated, while recording.
  absl::Status SubmitUncapturable(Work work, const std::string& what);
  absl::Status WaitUntil(std::chrono::steady_clock::time_point deadline);

  // True from BeginCapture to EndCapture, invalidated or not.
  bool IsCapturing() const;
  absl::Status BeginCapture();
  absl::StatusOr<std::vector<Work>> EndCapture();

 private:
  enum class Mode { kNormal, kRecording, kInvalidated };

  void RunQueue();
  absl::Status RefuseInCapture(const std::string& what);  // mutex_ held
  void Enqueue(Work work);                                // mutex_ held

  HostMemory& memory_;
  DeviceLoss& loss_;

  mutable std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::condition_variable work_finished_;
  std::deque<Work> queue_;
  std::uint64_t enqueued_ = 0;
  std::uint64_t finished_ = 0;
  bool stopping_ = false;
  Mode mode_ = Mode::kNormal;
  std::vector<Work> recorded_;
  std::string invalidated_by_;

  std::thread worker_;  // last: it uses all of the above
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_HOST_STREAM_H_
