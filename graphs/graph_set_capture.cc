// Warm-up and capture of a set, and the two proofs by capturing again.
#include <algorithm>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "device/error.h"
#include "graphs/capture.h"
#include "graphs/compare.h"
#include "graphs/graph_set.h"
#include "graphs/shifted_window.h"

namespace holdfast {
namespace {

void AppendPrefixed(const std::string& graph, const std::vector<std::string>& from,
                    std::vector<std::string>& to) {
  for (const std::string& line : from) to.push_back(absl::StrCat(graph, ": ", line));
}

}  // namespace

CaptureOptions GraphSet::OptionsOf(const Bucket& bucket, SpanId workspace) const {
  return {.plan = &bucket.plan,
          .scratch = workspace,
          .externals = {},
          .policy = options_.policy,
          .legacy_stream = options_.legacy_stream};
}

absl::Status GraphSet::WarmUp(SpanId workspace,
                              const std::function<void(const GraphKey&)>& before_each) {
  HOLDFAST_RETURN_IF_ERROR(CheckWorkspace(workspace));
  for (Bucket* bucket : LargestFirst()) {
    const std::string name = bucket->key.Name();
    if (before_each) before_each(bucket->key);
    HOLDFAST_RETURN_IF_ERROR(RunEager(lane_, name, bucket->step, OptionsOf(*bucket, workspace)));
    HOLDFAST_RETURN_IF_ERROR(Annotate(lane_.Synchronize(), name));
  }
  warm_ = true;
  return absl::OkStatus();
}

absl::Status GraphSet::Capture(SpanId workspace, const std::vector<ExternalRange>& externals) {
  if (captured_) {
    return MakeError({.kind = ErrorKind::kAlreadyExists, .object = lane_.name()},
                     "graphs are captured already");
  }
  HOLDFAST_RETURN_IF_ERROR(CheckWorkspace(workspace));
  if (!warm_) HOLDFAST_RETURN_IF_ERROR(WarmUp(workspace));
  std::map<GraphKey, std::unique_ptr<Graph>> graphs;
  for (Bucket* bucket : LargestFirst()) {
    CaptureOptions options = OptionsOf(*bucket, workspace);
    options.externals = externals;
    HOLDFAST_ASSIGN_OR_RETURN(graphs[bucket->key],
                              Graph::Capture(lane_, bucket->key, bucket->step, options));
  }
  for (Family& family : families_) {
    family.by_size.assign(static_cast<std::size_t>(family.buckets.largest()) + 1, nullptr);
    for (const int size : family.buckets.sizes()) {
      family.by_size[static_cast<std::size_t>(size)] = graphs.at(KeyOf(family.family, size)).get();
    }
  }
  counts_.captures += graphs.size();
  for (auto& [key, graph] : graphs) buckets_.at(key).graph = std::move(graph);
  workspace_ = workspace;
  captured_ = true;
  // A span added or moved from here on could lie where a graph believes its own.
  lane_.arena().Lock();
  return absl::OkStatus();
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
        CaptureStep(lane_, name, bucket->step, OptionsOf(*bucket, workspace)));
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
    CaptureOptions options = OptionsOf(*bucket, workspace);
    options.shift = shift;
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
