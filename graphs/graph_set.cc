#include "graphs/graph_set.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>

#include "absl/strings/str_cat.h"
#include "device/error.h"
#include "graphs/capture.h"
#include "graphs/shifted_window.h"

namespace holdfast {
namespace {

// The factory is the user's: its exceptions stop here.
absl::StatusOr<Step> MakeStep(const StepFactory& factory, const GraphKey& key) {
  const ErrorInfo thrown{.kind = ErrorKind::kInvalidArgument, .object = key.Name()};
  try {
    absl::StatusOr<Step> step = factory(key);
    if (!step.ok()) return Annotate(step.status(), key.Name());
    return step;
  } catch (const std::exception& e) {
    return MakeError(thrown, std::string("the step factory threw: ") + e.what());
  } catch (...) {
    return MakeError(thrown, "the step factory threw something that is no exception");
  }
}

void AppendPrefixed(const std::string& graph, const std::vector<std::string>& from,
                    std::vector<std::string>& to) {
  for (const std::string& line : from) to.push_back(absl::StrCat(graph, ": ", line));
}

}  // namespace

absl::Status GraphSet::AddPhase(Phase phase, BucketList buckets) {
  const std::string name = PhaseName(phase);
  if (!buckets_.empty()) {
    return MakeError({.kind = ErrorKind::kLocked, .object = name}, "the set is already measured");
  }
  if (!phases_.emplace(phase, PhaseTable{std::move(buckets), {}}).second) {
    return MakeError({.kind = ErrorKind::kAlreadyExists, .object = name}, "phase declared twice");
  }
  return absl::OkStatus();
}

absl::StatusOr<GraphSet::Bucket> GraphSet::MeasureBucket(const GraphKey& key) {
  const std::string name = key.Name();
  Bucket bucket{.key = key};
  HOLDFAST_ASSIGN_OR_RETURN(bucket.step, MakeStep(factory_, key));
  const Step guarded = [&](StepContext& context) { return CallStep(name, bucket.step, context); };
  HOLDFAST_ASSIGN_OR_RETURN(bucket.plan, MeasureStep(lane_.arena(), lane_.stream(), name, guarded));
  return bucket;
}

absl::Status GraphSet::Measure() {
  if (captured_) {
    return MakeError({.kind = ErrorKind::kLocked, .object = lane_.name()},
                     "graphs are captured already");
  }
  std::map<GraphKey, Bucket> measured;
  std::uint64_t height = 0, sum = 0;
  double ratio = 1;
  for (const auto& [phase, table] : phases_) {
    for (int size : table.buckets.sizes()) {
      const GraphKey key{.phase = phase, .size = size};
      HOLDFAST_ASSIGN_OR_RETURN(Bucket bucket, MeasureBucket(key));
      const ScratchPlan& plan = bucket.plan;
      height = std::max(height, plan.height);
      sum += plan.height;
      if (plan.lower_bound > 0) {
        ratio = std::max(ratio,
                         static_cast<double>(plan.height) / static_cast<double>(plan.lower_bound));
      }
      measured.emplace(key, std::move(bucket));
    }
  }
  buckets_ = std::move(measured);
  scratch_bytes_ = height;
  scratch_sum_ = sum;
  plan_ratio_ = ratio;
  return absl::OkStatus();
}

std::vector<GraphSet::Bucket*> GraphSet::LargestFirst() {
  std::vector<Bucket*> order;
  for (auto& [key, bucket] : buckets_) order.push_back(&bucket);
  std::stable_sort(order.begin(), order.end(),
                   [](const Bucket* a, const Bucket* b) { return a->key.size > b->key.size; });
  return order;
}

absl::Status GraphSet::CheckWorkspace(SpanId workspace) const {
  if (buckets_.empty()) {
    return MakeError({.kind = ErrorKind::kNotFound, .object = lane_.name()},
                     "nothing is measured yet");
  }
  if (scratch_bytes_ == 0) return absl::OkStatus();
  if (workspace == SpanId{}) {
    return MakeError(
        {.kind = ErrorKind::kInvalidArgument, .object = lane_.name(), .need = scratch_bytes_},
        "no workspace span for the lane's scratch");
  }
  const SpanInfo span = lane_.arena().span(workspace);
  if (span.range.bytes >= scratch_bytes_) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kOutOfExtent,
                    .object = span.spec.name,
                    .need = scratch_bytes_,
                    .have = span.range.bytes},
                   "the workspace is smaller than the largest bucket's scratch");
}

absl::Status GraphSet::WarmUp(SpanId workspace,
                              const std::function<void(const GraphKey&)>& before_each) {
  HOLDFAST_RETURN_IF_ERROR(CheckWorkspace(workspace));
  for (Bucket* bucket : LargestFirst()) {
    const std::string name = bucket->key.Name();
    if (before_each) before_each(bucket->key);
    HOLDFAST_RETURN_IF_ERROR(
        RunEager(lane_, name, bucket->step, {.plan = &bucket->plan, .scratch = workspace}));
    HOLDFAST_RETURN_IF_ERROR(Annotate(lane_.Synchronize(), name));
  }
  return absl::OkStatus();
}

absl::Status GraphSet::Capture(SpanId workspace, const std::vector<ExternalRange>& externals) {
  if (captured_) {
    return MakeError({.kind = ErrorKind::kAlreadyExists, .object = lane_.name()},
                     "graphs are captured already");
  }
  HOLDFAST_RETURN_IF_ERROR(CheckWorkspace(workspace));
  std::map<GraphKey, std::unique_ptr<Graph>> graphs;
  for (Bucket* bucket : LargestFirst()) {
    const CaptureOptions options{
        .plan = &bucket->plan, .scratch = workspace, .externals = externals};
    HOLDFAST_ASSIGN_OR_RETURN(graphs[bucket->key],
                              Graph::Capture(lane_, bucket->key, bucket->step, options));
  }
  for (auto& [phase, table] : phases_) {
    table.by_size.assign(static_cast<std::size_t>(table.buckets.largest()) + 1, nullptr);
  }
  for (auto& [key, graph] : graphs) {
    phases_.at(key.phase).by_size[static_cast<std::size_t>(key.size)] = graph.get();
    buckets_.at(key).graph = std::move(graph);
  }
  captured_ = true;
  return absl::OkStatus();
}

absl::StatusOr<Graph*> GraphSet::Dispatch(Phase phase, int n) {
  const auto found = phases_.find(phase);
  if (found == phases_.end() || !captured_) {
    return MakeError({.kind = ErrorKind::kNotFound, .object = PhaseName(phase)},
                     "phase is not captured");
  }
  const PhaseTable& table = found->second;
  const std::optional<int> size = table.buckets.Fit(n);
  if (!size.has_value()) {
    ++counts_.refused;
    return MakeError(
        {.kind = ErrorKind::kInvalidArgument, .object = PhaseName(phase)},
        absl::StrCat("no bucket holds ", n, "; the largest is ", table.buckets.largest()));
  }
  ++counts_.replays;
  counts_.real_rows += static_cast<std::uint64_t>(n);
  counts_.pad_rows += static_cast<std::uint64_t>(*size - n);
  return table.by_size[static_cast<std::size_t>(*size)];
}

Graph* GraphSet::Find(const GraphKey& key) const {
  const auto found = buckets_.find(key);
  return found == buckets_.end() ? nullptr : found->second.graph.get();
}

std::vector<Graph*> GraphSet::graphs() const {
  std::vector<Graph*> graphs;
  for (const auto& [key, bucket] : buckets_) {
    if (bucket.graph != nullptr) graphs.push_back(bucket.graph.get());
  }
  return graphs;
}

absl::Status GraphSet::CheckCaptured() const {
  if (captured_) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kNotFound, .object = lane_.name()},
                   "nothing is captured yet");
}

absl::StatusOr<std::vector<std::string>> GraphSet::Recapture(SpanId workspace) {
  HOLDFAST_RETURN_IF_ERROR(CheckCaptured());
  HOLDFAST_RETURN_IF_ERROR(CheckWorkspace(workspace));
  std::vector<std::string> lines;
  for (Bucket* bucket : LargestFirst()) {
    const std::string name = bucket->key.Name();
    HOLDFAST_ASSIGN_OR_RETURN(
        const std::unique_ptr<CapturedGraph> again,
        CaptureStep(lane_, name, bucket->step, {.plan = &bucket->plan, .scratch = workspace}));
    HOLDFAST_ASSIGN_OR_RETURN(const GraphView first, bucket->graph->captured().View());
    HOLDFAST_ASSIGN_OR_RETURN(const GraphView second, again->View());
    AppendPrefixed(name, DiffGraphs(first, second), lines);
  }
  return lines;
}

absl::StatusOr<std::vector<std::string>> GraphSet::ShiftedCapture(SpanId workspace,
                                                                  std::uint64_t shift) {
  HOLDFAST_RETURN_IF_ERROR(CheckCaptured());
  HOLDFAST_RETURN_IF_ERROR(CheckWorkspace(workspace));
  const std::lock_guard<std::mutex> still(lane_.arena().transition_mutex());
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<ShiftedWindow> window,
                            ShiftedWindow::Create(lane_.arena(), shift));
  std::vector<std::string> lines;
  for (Bucket* bucket : LargestFirst()) {
    const std::string name = bucket->key.Name();
    const CaptureOptions options{.plan = &bucket->plan, .scratch = workspace, .shift = shift};
    HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<CapturedGraph> moved,
                              CaptureStep(lane_, name, bucket->step, options));
    HOLDFAST_ASSIGN_OR_RETURN(const GraphView shifted, moved->View());
    HOLDFAST_ASSIGN_OR_RETURN(const ShiftReport report,
                              bucket->graph->ProveShifted(shifted, shift));
    AppendPrefixed(name, report.problems, lines);
  }
  HOLDFAST_RETURN_IF_ERROR(window->Close());
  return lines;
}

}  // namespace holdfast
