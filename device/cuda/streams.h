// CUDA streams, waiting with a deadline, and the state of a capture.
#ifndef HOLDFAST_DEVICE_CUDA_STREAMS_H_
#define HOLDFAST_DEVICE_CUDA_STREAMS_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_capture.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_event.h"
#include "device/device.h"

namespace holdfast {

// A non-blocking stream: it never waits for the legacy default stream. The context outlives it. All
// methods but the destructor want the context to be current.
//
//   idle --BeginCapture, or a wait for an event of a capture--> capturing --the capture's end-->
//   idle
class CudaStream final : public Stream {
 public:
  static absl::StatusOr<std::unique_ptr<CudaStream>> Create(const CudaContext* context,
                                                            std::string name);
  // Ends a capture nobody ended, waits for the work, destroys the stream.
  ~CudaStream() override;

  cudaStream_t get() const { return stream_; }
  void* native() const override { return stream_; }

  // kUncapturable while capturing, and the capture is spoiled: `what` (a literal) cannot be
  // recorded, so what the caller is recording is not what it means. The driver is not asked.
  absl::Status RefuseInCapture(const char* what) {
    if (!maybe_capturing_.load(std::memory_order_relaxed)) [[likely]]
      return absl::OkStatus();
    return RefuseIfCapturing(what);
  }

  // Waits until the work enqueued so far is done; kDeadlineExceeded leaves it running.
  // Refused in a capture.
  absl::Status WaitUntil(std::chrono::steady_clock::time_point deadline);
  // In a capture these mark a place in it, and draw this stream into it.
  absl::Status Record(CudaEvent& event);
  absl::Status Wait(CudaEvent& event);

  // kBusy if it is capturing already.
  absl::Status BeginCapture(LegacyStream legacy);
  // The caller owns the graph. kUncapturable for a capture that was spoiled or has work that was
  // never joined; kInvalidArgument for a stream that did not begin one, or on another thread than
  // began it (which cannot end it: the capture goes on). After any other error its streams are
  // usable again.
  absl::StatusOr<cudaGraph_t> EndCapture();

 private:
  CudaStream(const CudaContext* context, std::string name, cudaStream_t stream)
      : Stream(std::move(name)), context_(context), stream_(stream) {}

  // The capture it takes part in; null once that has ended.
  std::shared_ptr<CudaCapture> capture();
  void Join(std::shared_ptr<CudaCapture> capture);
  absl::Status RefuseIfCapturing(const char* what);
  absl::Status MakeTripwire();
  absl::Status ArmTripwire();
  void DisarmTripwire();

  const CudaContext* context_;
  cudaStream_t stream_;
  // A blocking stream that takes part in a capture without doing anything: work on the legacy
  // stream would have to wait for it, which the driver refuses. Null until first wanted.
  cudaStream_t tripwire_ = nullptr;
  cudaEvent_t tripwire_event_ = nullptr;
  bool armed_ = false;

  std::atomic<bool> maybe_capturing_{false};
  std::mutex mutex_;
  std::shared_ptr<CudaCapture> capture_;  // guarded by mutex_
};

inline CudaStream& AsCuda(Stream& stream) { return static_cast<CudaStream&>(stream); }

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_STREAMS_H_
