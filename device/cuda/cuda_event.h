// CUDA events without timing.
#ifndef HOLDFAST_DEVICE_CUDA_CUDA_EVENT_H_
#define HOLDFAST_DEVICE_CUDA_CUDA_EVENT_H_

#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_capture.h"
#include "device/cuda/cuda_context.h"
#include "device/device.h"

namespace holdfast {

// The context outlives it. All methods but the destructor want the context to be current.
class CudaEvent final : public Event {
 public:
  static absl::StatusOr<std::unique_ptr<CudaEvent>> Create(const CudaContext* context);
  ~CudaEvent() override;

  cudaEvent_t get() const { return event_; }
  // The capture it was last recorded in; null if in none.
  void set_capture(std::shared_ptr<CudaCapture> capture) {
    std::lock_guard<std::mutex> lock(mutex_);
    capture_ = std::move(capture);
  }
  std::shared_ptr<CudaCapture> capture() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return capture_;
  }
  // kDeadlineExceeded leaves the marked work running; kUncapturable for a mark in a capture.
  absl::Status WaitUntil(std::chrono::steady_clock::time_point deadline);

 private:
  CudaEvent(const CudaContext* context, cudaEvent_t event) : context_(context), event_(event) {}

  const CudaContext* context_;
  cudaEvent_t event_;
  mutable std::mutex mutex_;
  std::shared_ptr<CudaCapture> capture_;  // guarded by mutex_
};

inline CudaEvent& AsCuda(Event& event) { return static_cast<CudaEvent&>(event); }

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_CUDA_EVENT_H_
