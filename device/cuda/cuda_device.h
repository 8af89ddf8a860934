// Opens an NVIDIA GPU as a Device. Nothing CUDA-typed leaves this folder.
#ifndef HOLDFAST_DEVICE_CUDA_CUDA_DEVICE_H_
#define HOLDFAST_DEVICE_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "device/device.h"

namespace holdfast {

// The GPU the driver numbers `ordinal`. kNotFound, saying why, if there is no driver library, if it
// is older than CUDA 12.4, or if it has no such GPU; kUnsupported for a GPU without virtual memory
// management or one this build holds no code for.
absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int ordinal);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_CUDA_DEVICE_H_
