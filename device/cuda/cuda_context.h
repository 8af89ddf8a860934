// The primary context of one GPU, and what each call must do before it reaches the driver.
#ifndef HOLDFAST_DEVICE_CUDA_CUDA_CONTEXT_H_
#define HOLDFAST_DEVICE_CUDA_CUDA_CONTEXT_H_

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/driver_table.h"

namespace holdfast {

// Holds one reference to the primary context, the one the runtime and libraries use too.
// Thread-safe.
class CudaContext {
 public:
  // Errors as OpenCudaDevice says.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Retain(int ordinal);
  // For who only reads graphs of a program that has contexts of its own: holds no reference and is
  // never made current. Lives for ever.
  static const CudaContext& ForReading(const DriverTable& driver);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const DriverTable& driver() const { return *driver_; }
  CUdevice device() const { return device_; }
  const std::string& name() const { return name_; }  // "cuda:0"

  // Makes the context this thread's. A thread that already has it pays one read; asking the driver
  // rather than remembering keeps it right where other libraries or devices switch contexts on the
  // same thread.
  absl::Status MakeCurrent() const {
    CUcontext current = nullptr;
    if (driver_->CtxGetCurrent(&current) == CUDA_SUCCESS && current == context_) {
      return absl::OkStatus();
    }
    return ToStatus(driver_->CtxSetCurrent(context_), "cuCtxSetCurrent", {.object = name_});
  }

  // Bytes free on the whole GPU; 0 if the driver does not say. Needs the context to be current.
  std::uint64_t FreeBytes() const;

  absl::StatusOr<int> Attribute(CUdevice_attribute attribute) const;

 private:
  CudaContext(const DriverTable* driver, CUdevice device, CUcontext context, std::string name)
      : driver_(driver), device_(device), context_(context), name_(std::move(name)) {}

  const DriverTable* driver_;
  CUdevice device_;
  CUcontext context_;
  std::string name_;
};

// While alive, calls of this thread that a capture in the same thread would forbid (allocations,
// waits on other streams, loading code) go through without breaking the capture.
class RelaxedCaptureScope {
 public:
  RelaxedCaptureScope() { Exchange(); }
  ~RelaxedCaptureScope() { Exchange(); }
  RelaxedCaptureScope(const RelaxedCaptureScope&) = delete;
  RelaxedCaptureScope& operator=(const RelaxedCaptureScope&) = delete;

 private:
  // Swaps mode_ with the thread's mode; a second swap restores it. Fails only where the context is
  // lost, which the call it surrounds reports.
  void Exchange() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_CUDA_CONTEXT_H_
