// Whether a host device is lost: sticky, with the reason of the first fault. Thread-safe.
#ifndef HOLDFAST_DEVICE_HOST_DEVICE_LOSS_H_
#define HOLDFAST_DEVICE_HOST_DEVICE_LOSS_H_

#include <atomic>
#include <mutex>
#include <string>

#include "device/error.h"

namespace holdfast {

class DeviceLoss {
 public:
  void Set(const std::string& reason) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (lost_.load()) return;
    reason_ = reason;
    lost_.store(true);
  }
  bool lost() const { return lost_.load(); }
  // OK, or kDeviceLost with the reason. A fresh status each time: none is shared between threads.
  absl::Status Check() const {
    if (!lost_.load()) return absl::OkStatus();
    std::lock_guard<std::mutex> lock(mutex_);
    return MakeError({.kind = ErrorKind::kDeviceLost, .object = "host"}, reason_);
  }

 private:
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::string reason_;
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_DEVICE_LOSS_H_
