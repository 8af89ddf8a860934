// CUDA streams, waiting with a deadline, and the state of a capture.
#ifndef HOLDFAST_DEVICE_CUDA_STREAMS_H_
#define HOLDFAST_DEVICE_CUDA_STREAMS_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_context.h"
#include "device/device.h"

namespace holdfast {

// A non-blocking stream: it never waits for the legacy default stream. The context outlives it. All
// methods but the destructor want the context to be current.
//
//   idle --BeginCapture--> capturing --EndCapture--> idle
//                              |  a call that cannot be recorded
//                              v
//                           spoiled --EndCapture (an error)--> idle
class CudaStream final : public Stream {
 public:
  static absl::StatusOr<std::unique_ptr<CudaStream>> Create(const CudaContext* context,
                                                            std::string name);
  // Ends a capture nobody ended, waits for the work, destroys the stream.
  ~CudaStream() override;

  cudaStream_t get() const { return stream_; }

  // kInvalidArgument while capturing, and the capture is spoiled: `what` (a literal) cannot be
  // recorded, so what the caller is recording is not what it means. The driver is not asked.
  absl::Status RefuseInCapture(const char* what);

  // Waits until the work enqueued so far is done; kDeadlineExceeded leaves it running.
  // Refused in a capture.
  absl::Status WaitUntil(std::chrono::steady_clock::time_point deadline);

  // kBusy if it is capturing already.
  absl::Status BeginCapture();
  // The caller owns the graph. kInvalidArgument for a spoiled capture, without a capture, or on
  // another thread than began it (which cannot end it: the capture goes on). After any other error
  // the stream is usable again.
  absl::StatusOr<cudaGraph_t> EndCapture();

 private:
  CudaStream(const CudaContext* context, std::string name, cudaStream_t stream)
      : Stream(std::move(name)), context_(context), stream_(stream) {}

  const CudaContext* context_;
  cudaStream_t stream_;
  std::atomic<bool> capturing_{false};
  std::atomic<const char*> spoiled_by_{nullptr};
  std::atomic<std::thread::id> capture_thread_{};
};

inline CudaStream& AsCuda(Stream& stream) { return static_cast<CudaStream&>(stream); }

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_STREAMS_H_
