// The reserve for kernels' stacks: counted by holders, given back by the last.
#include "device/device.h"
#include "device/pass.h"

namespace holdfast {

absl::Status Device::HoldLocalMemory() {
  std::lock_guard<std::mutex> lock(local_memory_lock_);
  HOLDFAST_RETURN_IF_ERROR(TakeLocalMemoryAgain());
  ++local_memory_holders_;
  return absl::OkStatus();
}

absl::Status Device::DropLocalMemory() {
  std::lock_guard<std::mutex> lock(local_memory_lock_);
  if (local_memory_holders_ == 0) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "local memory"},
                     "nobody holds it");
  }
  if (local_memory_holders_ == 1) HOLDFAST_RETURN_IF_ERROR(GiveLocalMemoryBack());
  --local_memory_holders_;
  return absl::OkStatus();
}

absl::Status Device::ReleaseLocalMemory() {
  std::lock_guard<std::mutex> lock(local_memory_lock_);
  return GiveLocalMemoryBack();
}

absl::Status Device::RestoreLocalMemory() {
  std::lock_guard<std::mutex> lock(local_memory_lock_);
  return TakeLocalMemoryAgain();
}

bool Device::local_memory_released() const {
  std::lock_guard<std::mutex> lock(local_memory_lock_);
  return local_memory_released_;
}

absl::Status Device::GiveLocalMemoryBack() {
  if (local_memory_released_) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(
      Pass(calls_, Call::kReleaseLocalMemory, [&] { return DoReleaseLocalMemory(); }));
  local_memory_released_ = true;
  return absl::OkStatus();
}

absl::Status Device::TakeLocalMemoryAgain() {
  if (!local_memory_released_) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(
      Pass(calls_, Call::kRestoreLocalMemory, [&] { return DoRestoreLocalMemory(); }));
  local_memory_released_ = false;
  return absl::OkStatus();
}

}  // namespace holdfast
