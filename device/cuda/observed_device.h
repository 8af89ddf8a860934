// A device that only looks: reads graphs and asks about addresses in a program that is not ours.
#ifndef HOLDFAST_DEVICE_CUDA_OBSERVED_DEVICE_H_
#define HOLDFAST_DEVICE_CUDA_OBSERVED_DEVICE_H_

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "device/device.h"

namespace holdfast {

// What somebody who keeps a record knows of an address; nullopt: ask the driver. Called from any
// thread.
using AddressBook = std::function<std::optional<AddressState>(DeviceAddress)>;

// Takes nothing and makes nothing: no context, no stream, no memory, and the CUDA runtime linked
// into this binary stays asleep. The driver must be in use by the program already; its contexts are
// left as they are. AdoptGraph and Query work, everything else is kUnsupported. kNotFound as
// LoadDriver. What is adopted may be read on any thread of the program.
absl::StatusOr<std::unique_ptr<Device>> ObserveCudaDriver(AddressBook book);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_OBSERVED_DEVICE_H_
