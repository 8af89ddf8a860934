// A capture on a GPU: the stream that began it, those of ours that were drawn in, and what spoiled
// it.
#ifndef HOLDFAST_DEVICE_CUDA_CUDA_CAPTURE_H_
#define HOLDFAST_DEVICE_CUDA_CUDA_CAPTURE_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/cuda/driver_table.h"

namespace holdfast {

class CudaStream;

// Shared by streams and events. Thread-safe.
class CudaCapture {
 public:
  explicit CudaCapture(const CudaStream* origin)
      : origin_(origin), thread_(std::this_thread::get_id()) {}

  const CudaStream* origin() const { return origin_; }
  std::thread::id thread() const { return thread_; }

  // `what` (a literal) cannot be recorded. The first reason stays.
  void Spoil(const char* what) {
    const char* none = nullptr;
    spoiled_by_.compare_exchange_strong(none, what);
  }
  const char* spoiled_by() const { return spoiled_by_; }

  void End() { ended_ = true; }
  bool ended() const { return ended_; }

  void Add(const CudaStream* side);
  void Remove(const CudaStream* side);
  // While it is under way: "stream 'a' (its last operation: kernel k), ..." of all work that the
  // stream that began it would not wait for; "" if there is none or the driver does not say.
  std::string Unjoined(const DriverTable& driver) const;

 private:
  const CudaStream* origin_;
  std::thread::id thread_;
  std::atomic<const char*> spoiled_by_{nullptr};
  std::atomic<bool> ended_{false};
  mutable std::mutex mutex_;
  std::vector<const CudaStream*> sides_;  // guarded by mutex_
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_CUDA_CAPTURE_H_
