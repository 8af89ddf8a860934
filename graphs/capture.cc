#include "graphs/capture.h"

#include <exception>

#include "device/error.h"

namespace holdfast {
namespace {

const ScratchPlan& PlanOf(const CaptureOptions& options) {
  static const ScratchPlan empty;
  return options.plan == nullptr ? empty : *options.plan;
}

// Scratch as the plan says, in what is committed of the workspace span (moved by the shift). A step
// without scratch needs none.
ScratchSession ServeScratch(const Arena& arena, const std::string& name,
                            const CaptureOptions& options) {
  const ScratchPlan& plan = PlanOf(options);
  AddressRange workspace;
  if (plan.height > 0) {
    workspace = {arena.range(options.scratch).base, arena.committed_bytes(options.scratch)};
  }
  return ScratchSession::Serve(name, workspace.base + options.shift, workspace.bytes, plan);
}

absl::Status CheckScratch(const Arena& arena, const std::string& name,
                          const CaptureOptions& options) {
  if (PlanOf(options).height == 0 || options.scratch != SpanId{}) return absl::OkStatus();
  return MakeError(
      {.kind = ErrorKind::kInvalidArgument, .object = name, .need = PlanOf(options).height},
      "the step takes scratch, but no workspace span of '" + arena.name() + "' was given");
}

// Runs the step with its planned scratch and checks that it asked for all of it.
absl::Status RunPlanned(Lane& lane, const std::string& name, const Step& step,
                        const CaptureOptions& options) {
  Arena& arena = lane.arena();
  ScratchSession scratch = ServeScratch(arena, name, options);
  StepContext context(arena.device(), lane.stream(), ArenaView(arena, options.shift), scratch,
                      &lane.sides());
  HOLDFAST_RETURN_IF_ERROR(CallStep(name, step, context));
  HOLDFAST_RETURN_IF_ERROR(Annotate(context.CheckJoined(), name));
  return Annotate(scratch.Finish(), name);
}

}  // namespace

absl::Status CallStep(const std::string& name, const Step& step, StepContext& context) {
  const ErrorInfo thrown{.kind = ErrorKind::kInvalidArgument, .object = name};
  try {
    return Annotate(step(context), name);
  } catch (const std::exception& e) {
    return MakeError(thrown, std::string("the step threw: ") + e.what());
  } catch (...) {
    return MakeError(thrown, "the step threw something that is no exception");
  }
}

absl::StatusOr<std::unique_ptr<CapturedGraph>> CaptureAdmitted(Lane& lane, const std::string& name,
                                                               const Step& step,
                                                               const CaptureOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(CheckScratch(lane.arena(), name, options));
  HOLDFAST_ASSIGN_OR_RETURN(const Lane::Turn turn, lane.TakeTurn(name));
  Device& device = lane.device();
  HOLDFAST_RETURN_IF_ERROR(
      Annotate(device.BeginCapture(lane.stream(), options.legacy_stream), name));
  const absl::Status ran = RunPlanned(lane, name, step, options);
  // Always, so that the stream is usable again; what was recorded by a failed step goes away here.
  absl::StatusOr<std::unique_ptr<CapturedGraph>> captured = device.EndCapture(lane.stream());
  HOLDFAST_RETURN_IF_ERROR(ran);
  if (!captured.ok()) return Annotate(captured.status(), name);
  return captured;
}

absl::StatusOr<std::unique_ptr<CapturedGraph>> CaptureStep(Lane& lane, const std::string& name,
                                                           const Step& step,
                                                           const CaptureOptions& options) {
  absl::StatusOr<AdmissionGate::Pass> pass = lane.arena().gate().Enter();
  if (!pass.ok()) return Annotate(pass.status(), name);
  return CaptureAdmitted(lane, name, step, options);
}

absl::Status RunEager(Lane& lane, const std::string& name, const Step& step,
                      const CaptureOptions& options) {
  Arena& arena = lane.arena();
  if (options.shift != 0) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name},
                     "a shifted step cannot run: nothing is mapped there");
  }
  HOLDFAST_RETURN_IF_ERROR(CheckScratch(arena, name, options));
  absl::StatusOr<AdmissionGate::Pass> pass = arena.gate().Enter();
  if (!pass.ok()) return Annotate(pass.status(), name);
  // Nobody knows yet which spans the step touches.
  HOLDFAST_RETURN_IF_ERROR(Annotate(arena.CheckReady(arena.tags()), name));
  HOLDFAST_ASSIGN_OR_RETURN(const Lane::Turn turn, lane.TakeTurn(name));
  const absl::Status ran = RunPlanned(lane, name, step, options);
  // What a failed step left on side streams was perhaps never joined: nothing later waits for it.
  if (!ran.ok()) lane.sides().Synchronize().IgnoreError();
  return ran;
}

}  // namespace holdfast
