// The host device: the contract of Device kept by memfd pages, mmap and worker threads. Not a mock:
// memory runs out, streams run behind, stray accesses are errors. See host_memory.h, host_stream.h,
// work.h.
#ifndef HOLDFAST_DEVICE_HOST_HOST_DEVICE_H_
#define HOLDFAST_DEVICE_HOST_HOST_DEVICE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "device/device.h"

namespace holdfast {

// Devices opened in one process are independent: each has its own memory and does not know the
// others'.
absl::StatusOr<std::unique_ptr<Device>> OpenHostDevice(const DeviceOptions& options);

// Another process on a host device, as far as its memory shows: bytes that are gone from the free
// ones and in no figure of this process. kOutOfMemory; kInvalidArgument for more than was taken;
// kUnsupported for a device that is none of the host's.
absl::Status TakeForNeighbour(Device& device, std::uint64_t bytes);
absl::Status GiveFromNeighbour(Device& device, std::uint64_t bytes);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_HOST_DEVICE_H_
