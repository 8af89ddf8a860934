#include "device/cuda/cuda_error.h"

#include "absl/strings/str_format.h"
#include "device/cuda/driver_table.h"

namespace holdfast {
namespace {

// After these the context answers every call with an error.
bool IsContextLost(int code) {
  switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE: return true;
    default: return false;
  }
}

// The driver's answers to what a capture cannot hold: numbers in a row.
bool IsCaptureError(int code) {
  return code >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         code <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

absl::Status Make(int code, const std::string& text, const char* call, const CallContext& context) {
  ErrorKind kind = ErrorKind::kDriver;
  if (IsContextLost(code)) {
    kind = ErrorKind::kDeviceLost;
  } else if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    kind = context.out_of_memory;
  } else if (code == CUDA_ERROR_INVALID_VALUE) {
    kind = ErrorKind::kInvalidArgument;
  } else if (code == CUDA_ERROR_NOT_SUPPORTED) {
    kind = ErrorKind::kUnsupported;
  } else if (IsCaptureError(code)) {
    kind = ErrorKind::kUncapturable;
  }
  return MakeError({.kind = kind,
                    .object = context.object,
                    .need = context.need,
                    .have = context.have,
                    .call = call,
                    .code = code},
                   text);
}

}  // namespace

absl::Status ToStatus(CUresult code, const char* call, const CallContext& context) {
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (const auto driver = LoadDriver(); driver.ok()) {
    // Both leave null for a code they do not know.
    static_cast<void>((*driver)->GetErrorName(code, &name));
    static_cast<void>((*driver)->GetErrorString(code, &text));
  }
  return Make(static_cast<int>(code),
              absl::StrFormat("%s, %s", name != nullptr ? name : "unnamed driver error",
                              text != nullptr ? text : "no description"),
              call, context);
}

absl::Status ToStatus(cudaError_t code, const char* call, const CallContext& context) {
  if (code == cudaSuccess) return absl::OkStatus();
  static_cast<void>(cudaGetLastError());
  return Make(static_cast<int>(code),
              absl::StrFormat("%s, %s", cudaGetErrorName(code), cudaGetErrorString(code)), call,
              context);
}

absl::Status ToStatus(cublasStatus_t code, const char* call, const CallContext& context) {
  if (code == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  ErrorKind kind = ErrorKind::kDriver;
  std::string text = "cuBLASLt refused";
  switch (code) {
    case CUBLAS_STATUS_NOT_INITIALIZED: text = "cuBLASLt is not initialised"; break;
    case CUBLAS_STATUS_ALLOC_FAILED: text = "cuBLASLt could not allocate"; break;
    case CUBLAS_STATUS_INVALID_VALUE: text = "cuBLASLt calls a value invalid"; break;
    case CUBLAS_STATUS_EXECUTION_FAILED: text = "cuBLASLt could not launch"; break;
    case CUBLAS_STATUS_INTERNAL_ERROR: text = "cuBLASLt failed inside"; break;
    case CUBLAS_STATUS_ARCH_MISMATCH:
      kind = ErrorKind::kUnsupported;
      text = "not for this GPU";
      break;
    case CUBLAS_STATUS_NOT_SUPPORTED:
      kind = ErrorKind::kUnsupported;
      text = "cuBLASLt has no algorithm for it";
      break;
    default: break;
  }
  return MakeError({.kind = kind,
                    .object = context.object,
                    .need = context.need,
                    .have = context.have,
                    .call = call,
                    .code = static_cast<int>(code)},
                   text);
}

}  // namespace holdfast
