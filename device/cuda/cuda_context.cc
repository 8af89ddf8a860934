#include "device/cuda/cuda_context.h"

#include <utility>

#include "absl/strings/str_format.h"

namespace holdfast {
namespace {

// Where a start-up call fails there is no GPU to use: whatever the code, the answer is kNotFound.
// The text of `why` names the call and its code.
absl::Status NotThere(const std::string& name, const absl::Status& why,
                      const std::string& message) {
  return MakeError({.kind = ErrorKind::kNotFound, .object = name},
                   absl::StrFormat("%s: %s", message, std::string(why.message())));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Retain(int ordinal) {
  std::string name = absl::StrFormat("cuda:%d", ordinal);
  auto loaded = LoadDriver();
  if (!loaded.ok()) return NotThere(name, loaded.status(), "no usable driver");
  const DriverTable& driver = **loaded;

  if (auto status = ToStatus(driver.Init(0), "cuInit"); !status.ok()) {
    return NotThere(name, status, "the driver does not start");
  }
  int count = 0;
  if (auto status = ToStatus(driver.DeviceGetCount(&count), "cuDeviceGetCount"); !status.ok()) {
    return NotThere(name, status, "the driver does not count its GPUs");
  }
  if (ordinal < 0 || ordinal >= count) {
    return MakeError({.kind = ErrorKind::kNotFound, .object = name},
                     absl::StrFormat("no such GPU: the driver shows %d", count));
  }
  CUdevice device = 0;
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(driver.DeviceGet(&device, ordinal), "cuDeviceGet", {.object = name}));

  // The runtime linked into this binary starts here; it wants a driver of its own major version.
  if (auto status = ToStatus(cudaSetDevice(ordinal), "cudaSetDevice", {.object = name});
      !status.ok()) {
    if (GetErrorInfo(status).value_or(ErrorInfo{}).code == cudaErrorInsufficientDriver) {
      return NotThere(name, status,
                      absl::StrFormat("driver too old for this build (driver %d, build %d)",
                                      driver.version, CUDART_VERSION));
    }
    return status;
  }
  CUcontext context = nullptr;
  HOLDFAST_RETURN_IF_ERROR(ToStatus(driver.DevicePrimaryCtxRetain(&context, device),
                                    "cuDevicePrimaryCtxRetain", {.object = name}));
  std::unique_ptr<CudaContext> result(new CudaContext(&driver, device, context, std::move(name)));
  HOLDFAST_RETURN_IF_ERROR(result->MakeCurrent());
  return result;
}

// The runtime keeps a reference of its own until the process ends, so modules stay loaded. An error
// can only mean that the driver is already gone, at the end of the process.
CudaContext::~CudaContext() { static_cast<void>(driver_->DevicePrimaryCtxRelease(device_)); }

std::uint64_t CudaContext::FreeBytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  return driver_->MemGetInfo(&free, &total) == CUDA_SUCCESS ? free : 0;
}

absl::StatusOr<int> CudaContext::Attribute(CUdevice_attribute attribute) const {
  int value = 0;
  HOLDFAST_RETURN_IF_ERROR(ToStatus(driver_->DeviceGetAttribute(&value, attribute, device_),
                                    "cuDeviceGetAttribute", {.object = name_}));
  return value;
}

}  // namespace holdfast
