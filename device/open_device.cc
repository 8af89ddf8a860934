#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "device/device.h"
#include "device/host/host_device.h"

#if HOLDFAST_WITH_CUDA
#include "device/cuda/cuda_device.h"
#endif

namespace holdfast {
namespace {

absl::StatusOr<std::unique_ptr<Device>> OpenCuda(int ordinal) {
#if HOLDFAST_WITH_CUDA
  return OpenCudaDevice(ordinal);
#else
  return MakeError({.kind = ErrorKind::kNotFound, .object = absl::StrCat("cuda:", ordinal)},
                   "this build has no CUDA code");
#endif
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const std::string& spec,
                                                   const DeviceOptions& options) {
  constexpr char kCudaPrefix[] = "cuda:";
  if (spec == "host") return OpenHostDevice(options);
  if (spec == "auto") {
    absl::StatusOr<std::unique_ptr<Device>> gpu = OpenCuda(0);
    return gpu.ok() ? std::move(gpu) : OpenHostDevice(options);
  }
  if (spec.rfind(kCudaPrefix, 0) == 0) {
    const std::string digits = spec.substr(sizeof(kCudaPrefix) - 1);
    int ordinal = 0;
    // Digits only: the number parser would let signs and spaces through.
    if (digits.find_first_not_of("0123456789") == std::string::npos &&
        absl::SimpleAtoi(digits, &ordinal)) {
      return OpenCuda(ordinal);
    }
  }
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = spec},
                   "a device is \"host\", \"cuda:N\" or \"auto\"");
}

}  // namespace holdfast
