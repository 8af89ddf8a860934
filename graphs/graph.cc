#include "graphs/graph.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "device/error.h"
#include "graphs/capture.h"

namespace holdfast {
namespace {

// Seconds since `start`, which then begins anew.
double Lap(std::chrono::steady_clock::time_point& start) {
  const auto begun = std::exchange(start, std::chrono::steady_clock::now());
  return std::chrono::duration<double>(start - begun).count();
}

// By the driver's count for this process; 0 if it does not say.
std::uint64_t ProcessBytes(const Device& device) {
  const absl::StatusOr<MemoryUse> use = device.Memory();
  return use.ok() ? use->process_bytes : 0;
}

}  // namespace

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
  auto clock = std::chrono::steady_clock::now();
  HOLDFAST_ASSIGN_OR_RETURN(graph->captured_, CaptureAdmitted(lane, name, step, options));
  graph->times_.capture = Lap(clock);
  absl::StatusOr<GraphView> view = graph->captured_->View();
  if (!view.ok()) return Annotate(view.status(), name);
  AuditReport audit = Audit(*view, arena.device(), &arena, options.externals, options.policy);
  HOLDFAST_RETURN_IF_ERROR(audit.Verdict(name));
  graph->manifest_ = MakeManifest(name, *view, std::move(audit), arena);
  graph->times_.audit = Lap(clock);
  HOLDFAST_RETURN_IF_ERROR(Annotate(graph->Instantiate(), name));
  return graph;
}

absl::Status Graph::CheckSpans() const {
  if (arena_.frees() == frees_) return absl::OkStatus();
  for (const PointerFinding& pointer : manifest_.audit.pointers) {
    if (pointer.kind != PointerClass::kSpan) continue;
    const std::string& name = manifest_.audit.ObjectOf(pointer);
    const std::optional<SpanId> span = arena_.Find(name);
    if (span.has_value() && arena_.range(*span).ContainsOrEnds({pointer.word})) continue;
    return MakeError({.kind = ErrorKind::kNotFound, .object = name},
                     "the graph refers to a span that was freed");
  }
  return absl::OkStatus();
}

absl::Status Graph::Instantiate() {
  const std::uint64_t before = ProcessBytes(device_);
  HOLDFAST_ASSIGN_OR_RETURN(executable_, device_.Instantiate(*captured_));
  const std::uint64_t after = ProcessBytes(device_);
  times_.instantiate = executable_->times().instantiate;
  times_.upload = executable_->times().upload;
  if (before == 0 || after == 0) {
    executable_memory_ = {.bytes = manifest_.nodes * kExecutableBytesPerNode, .estimated = true};
  } else {
    executable_memory_ = {.bytes = after - std::min(before, after)};
  }
  return absl::OkStatus();
}

Graph::~Graph() { Close(); }

void Graph::Close() {
  // The executable must live until its last replay has run. A lost device has nothing left to wait
  // for.
  if (executable_ != nullptr && replays() > 0) lane_.Synchronize().IgnoreError();
  executable_.reset();
}

absl::Status Graph::RefuseClosed() const {
  return MakeError({.kind = ErrorKind::kClosed, .object = name_}, "the graph was closed");
}

absl::Status Graph::RefuseBusy() const {
  return MakeError({.kind = ErrorKind::kBusy, .object = name_},
                   "the gate is closed by a transition");
}

absl::Status Graph::VerifyTags(std::uint64_t epoch) {
  HOLDFAST_RETURN_IF_ERROR(Annotate(arena_.CheckReady(manifest_.tags), name_));
  HOLDFAST_RETURN_IF_ERROR(Annotate(CheckSpans(), name_));
  verified_epoch_.store(epoch, std::memory_order_relaxed);
  return absl::OkStatus();
}

// Inside the gate the epoch stands still: what is verified now stays so until the launch is
// enqueued.
absl::Status Graph::CheckAdmitted() {
  const std::uint64_t epoch = arena_.epoch();
  if (epoch != verified_epoch_.load(std::memory_order_relaxed)) [[unlikely]] {
    HOLDFAST_RETURN_IF_ERROR(VerifyTags(epoch));
  }
  if (executable_ == nullptr) [[unlikely]]
    return RefuseClosed();
  return absl::OkStatus();
}

absl::Status Graph::Launch(Stream& stream) {
  const absl::Status launched = device_.LaunchGraph(stream, *executable_);
  if (!launched.ok()) [[unlikely]]
    return Annotate(launched, name_);
  // One thread of a lane at a time: no read-modify-write is needed.
  replays_.store(replays() + 1, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Graph::Replay() {
  const AdmissionGate::Pass pass = arena_.gate().TryEnter();
  if (!pass) [[unlikely]]
    return RefuseBusy();
  HOLDFAST_RETURN_IF_ERROR(CheckAdmitted());
  return Launch(lane_.stream());
}

absl::Status Graph::ReplayOn(Stream& stream) {
  if (&stream == &lane_.stream()) return Replay();
  const ErrorInfo wrong{.kind = ErrorKind::kInvalidArgument, .object = name_};
  if (stream.device() != &device_) {
    return MakeError(wrong, "stream '" + stream.name() + "' is of another device");
  }
  if (lane_.options().other_stream == OtherStream::kRefuse) {
    return MakeError(wrong, "stream '" + stream.name() + "' is not that of lane '" + lane_.name() +
                                "', which refuses others");
  }
  const AdmissionGate::Pass pass = arena_.gate().TryEnter();
  if (!pass) return RefuseBusy();
  HOLDFAST_RETURN_IF_ERROR(CheckAdmitted());
  HOLDFAST_RETURN_IF_ERROR(Annotate(lane_.Lend(stream), name_));
  const absl::Status launched = Launch(stream);
  const absl::Status returned = Annotate(lane_.Return(stream), name_);
  return launched.ok() ? returned : launched;
}

}  // namespace holdfast
