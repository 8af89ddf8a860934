// Scratch as a step asks for it: the measuring pass records sizes and lifetimes, every later pass
// must ask for the same, in the same order, and gets the planned addresses.
//
// A buffer is alive from its request until its ScratchBuffer is destroyed: whatever is enqueued
// meanwhile, on any stream of the step, may touch it. The order of operations (operation_order.h)
// makes sharing safe. Contents are undefined at the request and dead afterwards.
#ifndef HOLDFAST_ALLOCATOR_SCRATCH_SESSION_H_
#define HOLDFAST_ALLOCATOR_SCRATCH_SESSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/scratch_plan.h"
#include "device/address.h"

namespace holdfast {

class ScratchSession;

// A lease on a piece of scratch. Move-only; must not outlive its session.
class ScratchBuffer {
 public:
  ScratchBuffer() = default;
  ScratchBuffer(ScratchBuffer&& other) noexcept;
  ScratchBuffer& operator=(ScratchBuffer&& other) noexcept;
  ~ScratchBuffer();

  DeviceAddress address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }
  template <typename T>
  T* As() const {
    return address_.As<T>();
  }
  // Ends the lifetime early.
  void Release();

 private:
  friend class ScratchSession;
  ScratchSession* session_ = nullptr;
  std::size_t ordinal_ = 0;
  DeviceAddress address_;
  std::uint64_t bytes_ = 0;
};

class ScratchSession {
 public:
  // Records. Addresses are laid out from `base` without sharing; nobody may follow them.
  static ScratchSession Measure(std::string scope, DeviceAddress base);
  // Serves the planned addresses from `base`, of `capacity` bytes. `plan` must outlive it.
  static ScratchSession Serve(std::string scope, DeviceAddress base, std::uint64_t capacity,
                              const ScratchPlan& plan);

  // The next buffer. When serving, kPlanMismatch naming scope, ordinal, both names and both sizes
  // if it is not what was measured at this place, or if it comes at another place among the
  // operations; kOutOfExtent if the plan is higher than the capacity.
  absl::StatusOr<ScratchBuffer> Request(const std::string& name, std::uint64_t bytes);
  // An operation was enqueued, on a stream of the step (0: its own).
  void CountOperation(std::size_t stream = 0, OperationStart start = OperationStart::kFull) {
    order_.Add(stream, start);
  }
  // A fork or join: see OperationOrder::Follow.
  void Follow(std::size_t later, std::size_t earlier) { order_.Follow(later, earlier); }
  // Ends a serving pass: kPlanMismatch if fewer buffers were asked for than measured, if one lived
  // longer than measured (another one's memory was then under it), or if operations were put on
  // other streams, forked or joined otherwise.
  absl::Status Finish() const;
  // What was measured, lifetimes complete (all buffers must be gone).
  std::vector<ScratchRequest> measured() const;
  const OperationOrder& order() const { return order_; }
  bool measuring() const { return plan_ == nullptr; }

 private:
  friend class ScratchBuffer;
  ScratchSession() = default;
  absl::Status CheckPlanned(const std::string& name, std::uint64_t bytes) const;
  void End(std::size_t ordinal);

  std::string scope_;
  DeviceAddress base_;
  std::uint64_t capacity_ = 0;
  const ScratchPlan* plan_ = nullptr;
  std::vector<ScratchRequest> requests_;  // asked for so far
  std::uint64_t cursor_ = 0;              // measuring: next free byte
  OperationOrder order_;                  // of what was enqueued
  absl::Status overstayed_;               // serving: the first buffer that lived too long
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_SCRATCH_SESSION_H_
