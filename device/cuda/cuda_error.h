// One translation of CUDA's and cuBLAS's codes into our errors.
//
// The driver and the runtime share their numbers. Codes after which the context cannot be used
// become kDeviceLost whatever the call; "out of memory" becomes kOutOfMemory unless the caller says
// what else is scarce; "invalid value" becomes kInvalidArgument, "not supported" kUnsupported; what
// the driver refuses because of a capture kUncapturable; the rest is kDriver.
#ifndef HOLDFAST_DEVICE_CUDA_CUDA_ERROR_H_
#define HOLDFAST_DEVICE_CUDA_CUDA_ERROR_H_

#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "device/error.h"

namespace holdfast {

// What to say of a failed call. `out_of_memory` is the kind used when the code means that.
struct CallContext {
  std::string object;
  std::uint64_t need = 0;
  std::uint64_t have = 0;
  ErrorKind out_of_memory = ErrorKind::kOutOfMemory;
};

// OK for success. `call` is the function's name.
absl::Status ToStatus(CUresult code, const char* call, const CallContext& context = {});
// Also clears the runtime's per-thread "last error", so that it cannot surface elsewhere.
absl::Status ToStatus(cudaError_t code, const char* call, const CallContext& context = {});
absl::Status ToStatus(cublasStatus_t code, const char* call, const CallContext& context = {});

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_CUDA_ERROR_H_
