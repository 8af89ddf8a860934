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
  if (capturing_) {
    if (auto graph = EndCapture(); graph.ok()) static_cast<void>(cudaGraphDestroy(*graph));
  }
  const RelaxedCaptureScope relaxed;
  // Errors have been, or will be, reported by the calls that can report.
  static_cast<void>(cudaStreamSynchronize(stream_));
  static_cast<void>(cudaStreamDestroy(stream_));
  static_cast<void>(cudaGetLastError());
}

absl::Status CudaStream::RefuseInCapture(const char* what) {
  if (!capturing_) return absl::OkStatus();
  spoiled_by_ = what;
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name()},
                   absl::StrCat("the stream is capturing: ", what, " cannot be recorded"));
}

absl::Status CudaStream::WaitUntil(std::chrono::steady_clock::time_point deadline) {
  HOLDFAST_RETURN_IF_ERROR(RefuseInCapture("a wait"));
  const RelaxedCaptureScope relaxed;  // the thread may be capturing on another stream
  if (deadline == std::chrono::steady_clock::time_point::max()) {
    return ToStatus(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", {.object = name()});
  }
  return PollUntil(deadline, name(), "cudaStreamQuery", [&] { return cudaStreamQuery(stream_); });
}

absl::Status CudaStream::BeginCapture() {
  if (capturing_) {
    return MakeError({.kind = ErrorKind::kBusy, .object = name()}, "the stream is capturing");
  }
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
               "cudaStreamBeginCapture", {.object = name()}));
  capture_thread_ = std::this_thread::get_id();
  capturing_ = true;
  return absl::OkStatus();
}

absl::StatusOr<cudaGraph_t> CudaStream::EndCapture() {
  if (!capturing_) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name()},
                     "the stream is not capturing");
  }
  if (capture_thread_.load() != std::this_thread::get_id()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name()},
                     "a capture ends on the thread that began it");
  }
  cudaGraph_t graph = nullptr;
  const absl::Status status =
      ToStatus(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture", {.object = name()});
  const char* const spoiled_by = spoiled_by_.exchange(nullptr);
  capturing_ = false;
  if (status.ok() && graph != nullptr && spoiled_by == nullptr) return graph;
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  if (!status.ok()) return status;
  if (spoiled_by != nullptr) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name()},
                     absl::StrCat("the capture was spoiled by ", spoiled_by));
  }
  return MakeError({.kind = ErrorKind::kDriver, .object = name(), .call = "cudaStreamEndCapture"},
                   "the capture gave no graph");
}

}  // namespace holdfast
