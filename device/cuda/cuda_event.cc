#include "device/cuda/cuda_event.h"

#include "device/cuda/cuda_error.h"
#include "device/cuda/polling.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<CudaEvent>> CudaEvent::Create(const CudaContext* context) {
  const RelaxedCaptureScope relaxed;
  cudaEvent_t event = nullptr;
  HOLDFAST_RETURN_IF_ERROR(ToStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                                    "cudaEventCreateWithFlags", {.object = "event"}));
  return std::unique_ptr<CudaEvent>(new CudaEvent(context, event));
}

CudaEvent::~CudaEvent() {
  if (!context_->MakeCurrent().ok()) return;
  const RelaxedCaptureScope relaxed;
  static_cast<void>(cudaEventDestroy(event_));
}

absl::Status CudaEvent::WaitUntil(std::chrono::steady_clock::time_point deadline) {
  if (capture() != nullptr) {
    return MakeError({.kind = ErrorKind::kUncapturable, .object = "event", .call = "synchronize"},
                     "the event marks a place in a capture");
  }
  const RelaxedCaptureScope relaxed;
  if (deadline == std::chrono::steady_clock::time_point::max()) {
    return ToStatus(cudaEventSynchronize(event_), "cudaEventSynchronize", {.object = "event"});
  }
  return PollUntil(deadline, "event", "cudaEventQuery", [&] { return cudaEventQuery(event_); });
}

}  // namespace holdfast
