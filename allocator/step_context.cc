#include "allocator/step_context.h"

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {

void StepContext::Count(const std::string& name, OperationStart start) {
  scratch_.CountOperation(branch_, start);
  if (branch_ > 0) branches_->open[branch_ - 1].last = name;
}

absl::StatusOr<StepContext> StepContext::Fork() {
  std::size_t side = 0;  // the first that is free: the same each time the step runs
  while (side < branches_->open.size() && branches_->open[side].open) ++side;
  Stream* stream = &stream_;
  if (!measuring()) {
    if (branches_->sides == nullptr) {
      return MakeError({.kind = ErrorKind::kUnsupported, .object = stream_.name()},
                       "the step forks, but was given no side streams");
    }
    HOLDFAST_ASSIGN_OR_RETURN(SideStreams::Side* const to, branches_->sides->Get(side));
    HOLDFAST_RETURN_IF_ERROR(device_.Record(*to->event, stream_));
    HOLDFAST_RETURN_IF_ERROR(device_.Wait(*to->stream, *to->event));
    stream = to->stream.get();
  }
  if (branches_->open.size() <= side) branches_->open.resize(side + 1);
  branches_->open[side] = {.open = true, .last = "the fork"};
  scratch_.Follow(side + 1, branch_);
  return StepContext(*this, *stream, side + 1);
}

absl::Status StepContext::Join(StepContext side) {
  if (side.branches_ != branches_ || side.branch_ == 0 || side.branch_ == branch_ ||
      !branches_->open[side.branch_ - 1].open) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = side.stream_.name()},
                     "not an open fork of this step");
  }
  if (!measuring()) {
    HOLDFAST_ASSIGN_OR_RETURN(SideStreams::Side* const from,
                              branches_->sides->Get(side.branch_ - 1));
    HOLDFAST_RETURN_IF_ERROR(device_.Record(*from->event, *from->stream));
    HOLDFAST_RETURN_IF_ERROR(device_.Wait(stream_, *from->event));
  }
  branches_->open[side.branch_ - 1].open = false;
  scratch_.Follow(branch_, side.branch_);
  return absl::OkStatus();
}

absl::Status StepContext::CheckJoined() const {
  std::string open;
  for (std::size_t side = 0; side < branches_->open.size(); ++side) {
    if (!branches_->open[side].open) continue;
    absl::StrAppend(&open, open.empty() ? "" : ", ", "side stream ", side,
                    " (its last operation: ", branches_->open[side].last, ")");
  }
  if (open.empty()) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kUncapturable, .object = stream_.name(), .call = "join"},
                   absl::StrCat("work that was never joined: ", open));
}

absl::Status StepContext::Gemm(const GemmPlan& plan, DeviceAddress a, DeviceAddress b,
                               DeviceAddress d) {
  ScratchBuffer workspace;
  if (plan.workspace_bytes() > 0) {
    HOLDFAST_ASSIGN_OR_RETURN(
        workspace, Scratch("gemm workspace of " + plan.spec().name, plan.workspace_bytes()));
  }
  Count(plan.spec().name, OperationStart::kFull);
  if (measuring()) return absl::OkStatus();
  return device_.Gemm(stream_, plan, {.a = a, .b = b, .d = d, .workspace = workspace.address()});
}

absl::Status StepContext::CopyToDevice(DeviceAddress to, const void* from, std::uint64_t bytes) {
  Count("copy", OperationStart::kFull);
  if (measuring()) return absl::OkStatus();
  return device_.CopyToDevice(stream_, to, from, bytes);
}

absl::Status StepContext::CopyToHost(void* to, DeviceAddress from, std::uint64_t bytes) {
  Count("copy", OperationStart::kFull);
  if (measuring()) return absl::OkStatus();
  return device_.CopyToHost(stream_, to, from, bytes);
}

absl::Status StepContext::CopyOnDevice(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) {
  Count("copy", OperationStart::kFull);
  if (measuring()) return absl::OkStatus();
  return device_.CopyOnDevice(stream_, to, from, bytes);
}

absl::Status StepContext::Fill(DeviceAddress to, std::uint8_t value, std::uint64_t bytes) {
  Count("fill", OperationStart::kFull);
  if (measuring()) return absl::OkStatus();
  return device_.Fill(stream_, to, value, bytes);
}

absl::StatusOr<ScratchPlan> MeasureStep(Arena& arena, Stream& stream, const std::string& scope,
                                        const Step& step) {
  // Just behind the window: aligned, and nothing that could be followed by accident.
  ScratchSession session = ScratchSession::Measure(scope, arena.window().end());
  StepContext context(arena.device(), stream, ArenaView(arena), session);
  absl::Status run = step(context);
  if (run.ok()) run = context.CheckJoined();
  if (!run.ok()) return Annotate(run, "measuring " + scope);
  HOLDFAST_ASSIGN_OR_RETURN(ScratchPlan plan, PlanScratch(session.measured()));
  plan.order = session.order().fingerprint();
  plan.operations = session.order().count();
  return plan;
}

}  // namespace holdfast
