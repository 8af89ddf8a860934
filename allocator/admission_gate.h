// The gate between replays and transitions: one atomic word, replays in flight and a closed bit.
//
// A replay enters *before* it checks that its memory is there, and leaves when its launch has been
// enqueued. A transition closes the gate, waits until nobody is inside, and then fences the
// registered streams: after that no work that may touch the arena is admitted, scheduled or
// running.
#ifndef HOLDFAST_ALLOCATOR_ADMISSION_GATE_H_
#define HOLDFAST_ALLOCATOR_ADMISSION_GATE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"

namespace holdfast {

class AdmissionGate {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Inside while alive. Move-only.
  class Pass {
   public:
    Pass(Pass&& other) noexcept : gate_(other.gate_) { other.gate_ = nullptr; }
    explicit operator bool() const { return gate_ != nullptr; }  // inside
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->word_.fetch_sub(kOne, std::memory_order_release);
    }

   private:
    friend class AdmissionGate;
    explicit Pass(AdmissionGate* gate) : gate_(gate) {}
    AdmissionGate* gate_;
  };

  // kBusy at once while the gate is closed. Never waits; two atomic operations when open.
  absl::StatusOr<Pass> Enter();
  // The same for the path that counts nanoseconds: an empty pass while the gate is closed.
  Pass TryEnter() {
    // Entering and closing are read-modify-writes of one word, so one of the two comes first:
    // either the closer sees us inside, or we see the gate closed and step back.
    if ((word_.fetch_add(kOne, std::memory_order_acq_rel) & kClosed) != 0) [[unlikely]] {
      word_.fetch_sub(kOne, std::memory_order_release);
      return Pass(nullptr);
    }
    return Pass(this);
  }

  // Closes the gate, waits until nobody is inside, then waits for the work of every registered
  // stream. kDeadlineExceeded: reopened, nothing changed. kBusy: somebody else holds it closed.
  // kDeviceLost stays closed no longer than this call either.
  absl::Status CloseAndDrain(Device& device, Deadline deadline);
  // Closes and waits for entrants only; streams are not fenced. For the early-unmap negative
  // control.
  absl::Status CloseWithoutFence(Deadline deadline);
  void Reopen();
  bool closed() const { return (word_.load(std::memory_order_acquire) & kClosed) != 0; }

  // Streams whose work a drain must wait for; lanes register theirs. Must be unregistered before it
  // dies.
  void RegisterStream(Stream* stream);
  void UnregisterStream(Stream* stream);

 private:
  static constexpr std::uint64_t kClosed = 1;
  static constexpr std::uint64_t kOne = 2;  // one replay inside

  std::atomic<std::uint64_t> word_{0};
  std::mutex mutex_;  // guards streams_; held while they are fenced, so that none dies meanwhile
  std::vector<Stream*> streams_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_ADMISSION_GATE_H_
