// Holds a stream at a point until the test lets it go; works on every device. Puts work exactly
// where a race would need it: scheduled, and not yet running. A header alone, so that tests of
// every layer may use it; and not in namespace testing, which would hide GoogleTest's from them.
//
//   Gate gate(*device, *stream);      // work enqueued from here on waits
//   gate.WaitUntilReached();          // the stream stands at the gate
//   gate.Open();
#ifndef HOLDFAST_TESTING_GATE_H_
#define HOLDFAST_TESTING_GATE_H_

#include <condition_variable>
#include <mutex>

#include "device/device.h"

namespace holdfast {

class Gate {
 public:
  Gate(Device& device, Stream& stream) : device_(device), stream_(stream) {
    status_ = device.HostFunction(stream, &Gate::Hold, this);
  }
  // Opens it and waits for the stream: afterwards nothing refers to this object any more.
  ~Gate() {
    Open();
    device_.Synchronize(stream_).IgnoreError();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  const absl::Status& status() const { return status_; }

  void WaitUntilReached() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return reached_; });
  }
  bool reached() {
    std::lock_guard<std::mutex> lock(mutex_);
    return reached_;
  }
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  static void Hold(void* gate) {
    Gate& self = *static_cast<Gate*>(gate);
    std::unique_lock<std::mutex> lock(self.mutex_);
    self.reached_ = true;
    self.changed_.notify_all();
    self.changed_.wait(lock, [&self] { return self.open_; });
  }

  Device& device_;
  Stream& stream_;
  absl::Status status_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  bool open_ = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTING_GATE_H_
