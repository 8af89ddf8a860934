#include "graphs/graph.h"

#include <optional>

#include "device/error.h"
#include "graphs/capture.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<Graph>> Graph::Capture(Lane& lane, const GraphKey& key,
                                                      const Step& step,
                                                      const CaptureOptions& options) {
  std::unique_ptr<Graph> graph(new Graph(lane, key));
  const std::string& name = graph->name_;
  if (options.shift != 0) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name},
                     "a shifted capture cannot be replayed");
  }
  Arena& arena = lane.arena();
  // Inside the gate all along: copies and fills need their pages mapped until the graph is
  // instantiated.
  absl::StatusOr<AdmissionGate::Pass> pass = arena.gate().Enter();
  if (!pass.ok()) return Annotate(pass.status(), name);

  graph->frees_ = arena.frees();
  HOLDFAST_ASSIGN_OR_RETURN(graph->captured_, CaptureAdmitted(lane, name, step, options));
  absl::StatusOr<GraphView> view = graph->captured_->View();
  if (!view.ok()) return Annotate(view.status(), name);
  AuditReport audit = Audit(*view, arena.device(), &arena, options.externals, options.policy);
  HOLDFAST_RETURN_IF_ERROR(audit.Verdict(name));
  graph->manifest_ = MakeManifest(name, *view, std::move(audit), arena);

  absl::StatusOr<std::unique_ptr<ExecutableGraph>> executable =
      arena.device().Instantiate(*graph->captured_);
  if (!executable.ok()) return Annotate(executable.status(), name);
  graph->executable_ = *std::move(executable);
  return graph;
}

absl::Status Graph::CheckSpans() const {
  const Arena& arena = lane_.arena();
  if (arena.frees() == frees_) return absl::OkStatus();
  for (const PointerFinding& pointer : manifest_.audit.pointers) {
    if (pointer.kind != PointerClass::kSpan) continue;
    const std::optional<SpanId> span = arena.Find(pointer.object);
    if (span.has_value() && arena.range(*span).ContainsOrEnds({pointer.word})) continue;
    return MakeError({.kind = ErrorKind::kNotFound, .object = pointer.object},
                     "the graph refers to a span that was freed");
  }
  return absl::OkStatus();
}

Graph::~Graph() {
  // The executable must live until its last replay has run. A lost device has nothing left to wait
  // for.
  if (replays() > 0) lane_.Synchronize().IgnoreError();
}

absl::Status Graph::Replay() {
  Arena& arena = lane_.arena();
  const absl::StatusOr<AdmissionGate::Pass> pass = arena.gate().Enter();
  if (!pass.ok()) return Annotate(pass.status(), name_);
  // Inside the gate the epoch stands still: what is verified now stays so until the launch is
  // enqueued.
  const std::uint64_t epoch = arena.epoch();
  if (epoch != verified_epoch_.load(std::memory_order_relaxed)) {
    HOLDFAST_RETURN_IF_ERROR(Annotate(arena.CheckReady(manifest_.tags), name_));
    HOLDFAST_RETURN_IF_ERROR(Annotate(CheckSpans(), name_));
    verified_epoch_.store(epoch, std::memory_order_relaxed);
  }
  const absl::Status launched = arena.device().LaunchGraph(lane_.stream(), *executable_);
  if (!launched.ok()) return Annotate(launched, name_);
  replays_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

}  // namespace holdfast
