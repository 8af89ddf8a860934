#include "device/cuda/streams.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "device/cuda/polling.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create(const CudaContext* context,
                                                               std::string name) {
  const RelaxedCaptureScope relaxed;
  cudaStream_t stream = nullptr;
  HOLDFAST_RETURN_IF_ERROR(ToStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                    "cudaStreamCreateWithFlags", {.object = name}));
  return std::unique_ptr<CudaStream>(new CudaStream(context, std::move(name), stream));
}

CudaStream::~CudaStream() {
  if (!context_->MakeCurrent().ok()) return;
  if (const auto under_way = capture(); under_way != nullptr) {
    under_way->Spoil("the end of a stream");
    if (under_way->origin() == this) {
      EndCapture().status().IgnoreError();
    } else {
      under_way->Remove(this);
    }
  }
  const RelaxedCaptureScope relaxed;
  // Errors have been, or will be, reported by the calls that can report.
  static_cast<void>(cudaStreamSynchronize(stream_));
  static_cast<void>(cudaStreamDestroy(stream_));
  if (tripwire_ != nullptr) static_cast<void>(cudaStreamDestroy(tripwire_));
  if (tripwire_event_ != nullptr) static_cast<void>(cudaEventDestroy(tripwire_event_));
  static_cast<void>(cudaGetLastError());
}

std::shared_ptr<CudaCapture> CudaStream::capture() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (capture_ != nullptr && capture_->ended()) {
    capture_.reset();
    maybe_capturing_ = false;
  }
  return capture_;
}

void CudaStream::Join(std::shared_ptr<CudaCapture> capture) {
  std::lock_guard<std::mutex> lock(mutex_);
  capture_ = std::move(capture);
  maybe_capturing_ = true;
}

absl::Status CudaStream::RefuseIfCapturing(const char* what) {
  const std::shared_ptr<CudaCapture> under_way = capture();
  if (under_way == nullptr) return absl::OkStatus();
  under_way->Spoil(what);
  return MakeError({.kind = ErrorKind::kUncapturable, .object = name(), .call = what},
                   absl::StrCat("the stream is capturing: a graph cannot hold ", what));
}

absl::Status CudaStream::WaitUntil(std::chrono::steady_clock::time_point deadline) {
  HOLDFAST_RETURN_IF_ERROR(RefuseInCapture("synchronize"));
  const RelaxedCaptureScope relaxed;  // the thread may be capturing on another stream
  if (deadline == std::chrono::steady_clock::time_point::max()) {
    return ToStatus(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", {.object = name()});
  }
  return PollUntil(deadline, name(), "cudaStreamQuery", [&] { return cudaStreamQuery(stream_); });
}

absl::Status CudaStream::Record(CudaEvent& event) {
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(cudaEventRecord(event.get(), stream_), "cudaEventRecord", {.object = name()}));
  event.set_capture(capture());
  return absl::OkStatus();
}

absl::Status CudaStream::Wait(CudaEvent& event) {
  const std::shared_ptr<CudaCapture> marked = event.capture();
  const std::shared_ptr<CudaCapture> own = capture();
  const absl::Status waited = ToStatus(cudaStreamWaitEvent(stream_, event.get(), 0),
                                       "cudaStreamWaitEvent", {.object = name()});
  if (!waited.ok()) {
    if (own != nullptr) own->Spoil("a wait for an event outside the capture");
    return waited;
  }
  if (own == nullptr && marked != nullptr && !marked->ended()) {
    marked->Add(this);
    Join(marked);
  }
  return absl::OkStatus();
}

absl::Status CudaStream::MakeTripwire() {
  const RelaxedCaptureScope relaxed;
  if (tripwire_event_ == nullptr) {
    HOLDFAST_RETURN_IF_ERROR(
        ToStatus(cudaEventCreateWithFlags(&tripwire_event_, cudaEventDisableTiming),
                 "cudaEventCreateWithFlags", {.object = name()}));
  }
  if (tripwire_ != nullptr) return absl::OkStatus();
  return ToStatus(cudaStreamCreateWithFlags(&tripwire_, cudaStreamDefault),
                  "cudaStreamCreateWithFlags", {.object = name()});
}

absl::Status CudaStream::ArmTripwire() {
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(cudaEventRecord(tripwire_event_, stream_), "cudaEventRecord", {.object = name()}));
  HOLDFAST_RETURN_IF_ERROR(ToStatus(cudaStreamWaitEvent(tripwire_, tripwire_event_, 0),
                                    "cudaStreamWaitEvent", {.object = name()}));
  armed_ = true;
  return absl::OkStatus();
}

// It has recorded nothing, so joining it adds nothing. Errors come back from the end of the
// capture.
void CudaStream::DisarmTripwire() {
  if (!std::exchange(armed_, false)) return;
  static_cast<void>(cudaEventRecord(tripwire_event_, tripwire_));
  static_cast<void>(cudaStreamWaitEvent(stream_, tripwire_event_, 0));
  static_cast<void>(cudaGetLastError());
}

absl::Status CudaStream::BeginCapture(LegacyStream legacy) {
  if (capture() != nullptr) {
    return MakeError({.kind = ErrorKind::kBusy, .object = name()}, "the stream is capturing");
  }
  if (legacy == LegacyStream::kRefuse) HOLDFAST_RETURN_IF_ERROR(MakeTripwire());
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
               "cudaStreamBeginCapture", {.object = name()}));
  Join(std::make_shared<CudaCapture>(this));
  if (legacy == LegacyStream::kIgnore) return absl::OkStatus();
  absl::Status armed = ArmTripwire();
  if (armed.ok()) return armed;
  if (auto graph = EndCapture(); graph.ok()) static_cast<void>(cudaGraphDestroy(*graph));
  return armed;
}

absl::StatusOr<cudaGraph_t> CudaStream::EndCapture() {
  const std::shared_ptr<CudaCapture> ending = capture();
  const ErrorInfo invalid{.kind = ErrorKind::kInvalidArgument, .object = name()};
  if (ending == nullptr) return MakeError(invalid, "the stream is not capturing");
  if (ending->origin() != this) return MakeError(invalid, "another stream began the capture");
  if (ending->thread() != std::this_thread::get_id()) {
    return MakeError(invalid, "a capture ends on the thread that began it");
  }
  DisarmTripwire();
  const std::string unjoined = ending->Unjoined(context_->driver());
  cudaGraph_t graph = nullptr;
  const absl::Status status =
      ToStatus(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture", {.object = name()});
  ending->End();
  const char* const spoiled_by = ending->spoiled_by();
  if (status.ok() && graph != nullptr && spoiled_by == nullptr) return graph;
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  const int code = GetErrorInfo(status).value_or(ErrorInfo{}).code;
  ErrorInfo spoiled{.kind = ErrorKind::kUncapturable,
                    .object = name(),
                    .call = "cudaStreamEndCapture",
                    .code = code};
  if (spoiled_by != nullptr) {
    spoiled.call = spoiled_by;
    return MakeError(spoiled, absl::StrCat("the capture was spoiled by: ", spoiled_by));
  }
  if (!unjoined.empty()) {
    return MakeError(spoiled, absl::StrCat("work that was never joined: ", unjoined));
  }
  if (code == cudaErrorStreamCaptureInvalidated) {
    return MakeError(
        spoiled,
        "spoiled by a call the driver does not name: an allocation, a wait, or work on "
        "the legacy default stream");
  }
  if (!status.ok()) return status;
  return MakeError({.kind = ErrorKind::kDriver, .object = name(), .call = "cudaStreamEndCapture"},
                   "the capture gave no graph");
}

}  // namespace holdfast
