// What a step is given to enqueue one pass: a stream, the arena, and scratch.
//
// The same step runs three ways: measured (nothing is enqueued; scratch sizes and lifetimes are
// recorded), eager (warm-up), and captured. It must do the same calls each time, store no pointer,
// allocate nothing and never synchronise.
#ifndef HOLDFAST_ALLOCATOR_STEP_CONTEXT_H_
#define HOLDFAST_ALLOCATOR_STEP_CONTEXT_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/scratch_session.h"
#include "device/device.h"

namespace holdfast {

class StepContext {
 public:
  StepContext(Device& device, Stream& stream, ArenaView arena, ScratchSession& scratch)
      : device_(device), stream_(stream), arena_(arena), scratch_(scratch) {}

  Device& device() const { return device_; }
  Stream& stream() const { return stream_; }
  const ArenaView& arena() const { return arena_; }
  DeviceAddress Resolve(SpanId span) const { return arena_.Resolve(span); }
  bool measuring() const { return scratch_.measuring(); }

  absl::StatusOr<ScratchBuffer> Scratch(const std::string& name, std::uint64_t bytes) {
    return scratch_.Request(name, bytes);
  }

  template <typename Params>
  absl::Status Launch(const Op& op, const LaunchShape& shape, const Params& params) {
    scratch_.CountOperation();
    if (measuring()) return absl::OkStatus();
    return holdfast::Launch(device_, stream_, op, shape, params);
  }
  // D = A op(B): takes the plan's workspace from scratch for the length of the call.
  absl::Status Gemm(const GemmPlan& plan, DeviceAddress a, DeviceAddress b, DeviceAddress d);
  absl::Status CopyToDevice(DeviceAddress to, const void* from, std::uint64_t bytes);
  absl::Status CopyToHost(void* to, DeviceAddress from, std::uint64_t bytes);
  absl::Status CopyOnDevice(DeviceAddress to, DeviceAddress from, std::uint64_t bytes);
  absl::Status Fill(DeviceAddress to, std::uint8_t value, std::uint64_t bytes);

 private:
  Device& device_;
  Stream& stream_;
  ArenaView arena_;
  ScratchSession& scratch_;
};

using Step = std::function<absl::Status(StepContext&)>;

// Runs the step in measuring mode and returns what scratch it needs. Touches no memory.
absl::StatusOr<ScratchPlan> MeasureStep(Arena& arena, Stream& stream, const std::string& scope,
                                        const Step& step);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_STEP_CONTEXT_H_
