// Which captures are under way on a device, by thread, and what spoiled them: a capture cannot hold
// an allocation or a wait, whatever a driver would make of it, and a step that hides the error must
// not get a graph.
#ifndef HOLDFAST_DEVICE_CAPTURE_WATCH_H_
#define HOLDFAST_DEVICE_CAPTURE_WATCH_H_

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "device/call_table.h"

namespace holdfast {

class Stream;

// Thread-safe.
class CaptureWatch {
 public:
  // The calling thread captures with `stream` from now on.
  void Begin(const Stream& stream);
  // kUncapturable naming `call` if the calling thread is capturing; its captures are then spoiled.
  // One atomic read while nobody is.
  absl::Status Refuse(Call call) {
    if (under_way_.load(std::memory_order_acquire) == 0) return absl::OkStatus();
    return RefuseIfCapturing(call);
  }
  // kInvalidArgument if another thread began the capture of `stream`.
  absl::Status CheckMayEnd(const Stream& stream) const;
  // The capture is over: kUncapturable naming what spoiled it, if anything did.
  absl::Status End(const Stream& stream);
  // The stream dies, capturing or not.
  void Forget(const Stream& stream);

 private:
  struct Capture {
    const Stream* stream = nullptr;
    std::thread::id thread;
    std::optional<Call> spoiled_by;
  };

  absl::Status RefuseIfCapturing(Call call);

  std::atomic<int> under_way_{0};
  mutable std::mutex mutex_;
  std::vector<Capture> captures_;  // guarded by mutex_
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CAPTURE_WATCH_H_
