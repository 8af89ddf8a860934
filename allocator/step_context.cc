#include "allocator/step_context.h"

#include "device/error.h"

namespace holdfast {

absl::Status StepContext::Gemm(const GemmPlan& plan, DeviceAddress a, DeviceAddress b,
                               DeviceAddress d) {
  ScratchBuffer workspace;
  if (plan.workspace_bytes() > 0) {
    HOLDFAST_ASSIGN_OR_RETURN(
        workspace, Scratch("gemm workspace of " + plan.spec().name, plan.workspace_bytes()));
  }
  scratch_.CountOperation();
  if (measuring()) return absl::OkStatus();
  return device_.Gemm(stream_, plan, {.a = a, .b = b, .d = d, .workspace = workspace.address()});
}

absl::Status StepContext::CopyToDevice(DeviceAddress to, const void* from, std::uint64_t bytes) {
  scratch_.CountOperation();
  if (measuring()) return absl::OkStatus();
  return device_.CopyToDevice(stream_, to, from, bytes);
}

absl::Status StepContext::CopyToHost(void* to, DeviceAddress from, std::uint64_t bytes) {
  scratch_.CountOperation();
  if (measuring()) return absl::OkStatus();
  return device_.CopyToHost(stream_, to, from, bytes);
}

absl::Status StepContext::CopyOnDevice(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) {
  scratch_.CountOperation();
  if (measuring()) return absl::OkStatus();
  return device_.CopyOnDevice(stream_, to, from, bytes);
}

absl::Status StepContext::Fill(DeviceAddress to, std::uint8_t value, std::uint64_t bytes) {
  scratch_.CountOperation();
  if (measuring()) return absl::OkStatus();
  return device_.Fill(stream_, to, value, bytes);
}

absl::StatusOr<ScratchPlan> MeasureStep(Arena& arena, Stream& stream, const std::string& scope,
                                        const Step& step) {
  // Just behind the window: aligned, and nothing that could be followed by accident.
  ScratchSession session = ScratchSession::Measure(scope, arena.window().end());
  StepContext context(arena.device(), stream, ArenaView(arena), session);
  if (absl::Status run = step(context); !run.ok()) return Annotate(run, "measuring " + scope);
  return PlanScratch(session.measured());
}

}  // namespace holdfast
