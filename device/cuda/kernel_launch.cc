#include "device/cuda/kernel_launch.h"

#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_error.h"

namespace holdfast {
namespace {

absl::Status CheckParameters(const std::string& name, const void* function,
                             std::uint32_t params_bytes) {
  std::size_t offset = 0;
  std::size_t bytes = 0;
  HOLDFAST_RETURN_IF_ERROR(ToStatus(cudaFuncGetParamInfo(function, 0, &offset, &bytes),
                                    "cudaFuncGetParamInfo", {.object = name}));
  if (bytes != params_bytes) {
    return MakeError(
        {.kind = ErrorKind::kInternal, .object = name, .need = bytes, .have = params_bytes},
        "the CUDA twin takes another parameter struct");
  }
  const bool has_second = cudaFuncGetParamInfo(function, 1, &offset, &bytes) == cudaSuccess;
  static_cast<void>(cudaGetLastError());  // "invalid value" is the answer hoped for
  if (has_second) {
    return MakeError({.kind = ErrorKind::kInternal, .object = name},
                     "the CUDA twin takes more than one parameter");
  }
  return absl::OkStatus();
}

// Lets a block have as much dynamic shared memory as its static part leaves; unasked it is 48 KiB
// less that part. Always the same value: the setting belongs to the process, not to one Device
// object.
absl::Status AllowAllSharedMemory(const std::string& name, const void* function) {
  const RelaxedCaptureScope relaxed;
  const CallContext context{.object = name};
  cudaFuncAttributes attributes = {};
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(cudaFuncGetAttributes(&attributes, function), "cudaFuncGetAttributes", context));
  int ordinal = 0;
  HOLDFAST_RETURN_IF_ERROR(ToStatus(cudaGetDevice(&ordinal), "cudaGetDevice", context));
  int most = 0;
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal),
               "cudaDeviceGetAttribute", context));
  return ToStatus(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       most - static_cast<int>(attributes.sharedSizeBytes)),
                  "cudaFuncSetAttribute", context);
}

}  // namespace

absl::Status KernelLauncher::Know(const std::string& name, const void* function,
                                  std::uint32_t params_bytes, Function** entry) {
  auto known = known_.find(function);
  if (known == known_.end()) {
    const RelaxedCaptureScope relaxed;
    HOLDFAST_RETURN_IF_ERROR(CheckParameters(name, function, params_bytes));
    known = known_.emplace(function, Function{}).first;
  }
  *entry = &known->second;
  return absl::OkStatus();
}

absl::Status KernelLauncher::Prepare(const std::string& name, const void* function,
                                     std::uint32_t params_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Function* entry = nullptr;
  return Know(name, function, params_bytes, &entry);
}

absl::Status KernelLauncher::Launch(cudaStream_t stream, const std::string& name,
                                    const void* function, const LaunchShape& shape,
                                    const void* params, std::uint32_t params_bytes) {
  if (function == nullptr) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = name},
                     "no CUDA twin in this build");
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Function* entry = nullptr;
    HOLDFAST_RETURN_IF_ERROR(Know(name, function, params_bytes, &entry));
    if (shape.shared_bytes != 0 && !entry->may_use_all_shared) {
      HOLDFAST_RETURN_IF_ERROR(AllowAllSharedMemory(name, function));
      entry->may_use_all_shared = true;
    }
  }
  void* arguments[] = {const_cast<void*>(params)};
  cudaLaunchAttribute programmatic = {};
  programmatic.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  programmatic.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(shape.grid.x, shape.grid.y, shape.grid.z);
  config.blockDim = dim3(shape.block.x, shape.block.y, shape.block.z);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = &programmatic;
  config.numAttrs = shape.programmatic ? 1 : 0;
  return ToStatus(cudaLaunchKernelExC(&config, function, arguments), "cudaLaunchKernelExC",
                  {.object = name});
}

}  // namespace holdfast
