// What a step is given to enqueue one pass: a stream, the arena, and scratch.
//
// The same step runs three ways: measured (nothing is enqueued; scratch sizes and lifetimes are
// recorded), eager (warm-up), and captured. It must do the same calls each time, store no pointer,
// allocate nothing and never synchronise.
//
//   HOLDFAST_ASSIGN_OR_RETURN(StepContext side, step.Fork());
//   side.Launch(...);  step.Launch(...);       // may run side by side, and share no scratch
//   HOLDFAST_RETURN_IF_ERROR(step.Join(std::move(side)));
#ifndef HOLDFAST_ALLOCATOR_STEP_CONTEXT_H_
#define HOLDFAST_ALLOCATOR_STEP_CONTEXT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/scratch_session.h"
#include "allocator/side_streams.h"
#include "device/device.h"

namespace holdfast {

class StepContext {
 public:
  // Without side streams the step cannot fork (but for measuring, which uses none).
  StepContext(Device& device, Stream& stream, ArenaView arena, ScratchSession& scratch,
              SideStreams* sides = nullptr)
      : device_(device),
        stream_(stream),
        arena_(arena),
        scratch_(scratch),
        branches_(std::make_shared<Branches>(Branches{.sides = sides, .open = {}})) {}

  Device& device() const { return device_; }
  Stream& stream() const { return stream_; }
  const ArenaView& arena() const { return arena_; }
  DeviceAddress Resolve(SpanId span) const { return arena_.Resolve(span); }
  bool measuring() const { return scratch_.measuring(); }

  absl::StatusOr<ScratchBuffer> Scratch(const std::string& name, std::uint64_t bytes) {
    return scratch_.Request(name, bytes);
  }

  // A context on a side stream: what it is given starts after all this one was given so far.
  absl::StatusOr<StepContext> Fork();
  // What this one is given from now on starts after all `side` was given. Every fork is joined,
  // into any context of the step, before the step ends.
  absl::Status Join(StepContext side);
  // kUncapturable naming the streams of forks that were not joined, and their last operations.
  absl::Status CheckJoined() const;

  template <typename Params>
  absl::Status Launch(const Op& op, const LaunchShape& shape, const Params& params) {
    Count(op.name, shape.programmatic ? OperationStart::kProgrammatic : OperationStart::kFull);
    if (measuring()) return absl::OkStatus();
    return holdfast::Launch(device_, stream_, op, shape, params);
  }
  // D = A op(B): takes the plan's workspace from scratch for the length of the call.
  absl::Status Gemm(const GemmPlan& plan, DeviceAddress a, DeviceAddress b, DeviceAddress d);
  absl::Status CopyToDevice(DeviceAddress to, const void* from, std::uint64_t bytes);
  absl::Status CopyToHost(void* to, DeviceAddress from, std::uint64_t bytes);
  absl::Status CopyOnDevice(DeviceAddress to, DeviceAddress from, std::uint64_t bytes);
  absl::Status Fill(DeviceAddress to, std::uint8_t value, std::uint64_t bytes);
  // An operation of somebody else's on stream(), such as a library call: call() -> absl::Status
  // enqueues it. It is not called while measuring.
  template <typename Call>
  absl::Status Enqueue(const std::string& name, Call&& call) {
    Count(name, OperationStart::kFull);
    if (measuring()) return absl::OkStatus();
    return call();
  }

 private:
  // What the contexts of one pass have in common.
  struct Branches {
    struct Open {
      bool open = false;
      std::string last;  // its last operation
    };
    SideStreams* sides = nullptr;
    std::vector<Open> open;  // by side stream
  };

  StepContext(const StepContext& parent, Stream& stream, std::size_t branch)
      : device_(parent.device_),
        stream_(stream),
        arena_(parent.arena_),
        scratch_(parent.scratch_),
        branches_(parent.branches_),
        branch_(branch) {}

  void Count(const std::string& name, OperationStart start);

  Device& device_;
  Stream& stream_;
  ArenaView arena_;
  ScratchSession& scratch_;
  std::shared_ptr<Branches> branches_;
  std::size_t branch_ = 0;  // 0: the step's own stream; i: side stream i - 1
};

using Step = std::function<absl::Status(StepContext&)>;

// Runs the step in measuring mode and returns what scratch it needs. Touches no memory.
absl::StatusOr<ScratchPlan> MeasureStep(Arena& arena, Stream& stream, const std::string& scope,
                                        const Step& step);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_STEP_CONTEXT_H_
