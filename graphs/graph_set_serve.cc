// Serving: which graph, what where there is none, and what was counted.
#include <optional>

#include "absl/strings/str_cat.h"
#include "device/error.h"
#include "graphs/graph_set.h"

namespace holdfast {

absl::Status GraphSet::CheckServes(FamilyId family) const {
  if (closed_) {
    return MakeError({.kind = ErrorKind::kClosed, .object = lane_.name()},
                     "the graphs of the lane were closed");
  }
  if (captured_ && family.index < families_.size()) return absl::OkStatus();
  return MakeError(
      {.kind = ErrorKind::kNotFound,
       .object = family.index < families_.size() ? families_[family.index].family.Name()
                                                 : "a family of another set"},
      "not captured");
}

absl::Status GraphSet::Refuse(const Family& family, int n) {
  ++counts_.refused;
  return MakeError(
      {.kind = ErrorKind::kInvalidArgument, .object = family.family.Name()},
      absl::StrCat("no bucket holds ", n, "; the largest is ", family.buckets.largest()));
}

absl::StatusOr<Graph*> GraphSet::Dispatch(FamilyId id, int n) {
  HOLDFAST_RETURN_IF_ERROR(CheckServes(id));
  const Family& family = families_[id.index];
  const std::optional<int> size = family.buckets.Fit(n);
  if (!size.has_value()) return Refuse(family, n);
  ++counts_.replays;
  counts_.real_rows += static_cast<std::uint64_t>(n);
  counts_.pad_rows += static_cast<std::uint64_t>(*size - n);
  return family.by_size[static_cast<std::size_t>(*size)];
}

absl::StatusOr<Graph*> GraphSet::Dispatch(Phase phase, int n) {
  for (std::size_t i = 0; i < families_.size(); ++i) {
    if (families_[i].family == GraphFamily{.phase = phase}) return Dispatch(FamilyId{i}, n);
  }
  return MakeError({.kind = ErrorKind::kNotFound, .object = PhaseName(phase)}, "not captured");
}

absl::StatusOr<Served> GraphSet::Serve(FamilyId id, int n) {
  HOLDFAST_RETURN_IF_ERROR(CheckServes(id));
  const Family& family = families_[id.index];
  if (n == 0) {
    ++counts_.empty;
    return Served::kNothing;
  }
  if (n > family.buckets.largest() && options_.eager_above_largest) {
    HOLDFAST_RETURN_IF_ERROR(RunAboveLargest(family, n));
    return Served::kEager;
  }
  HOLDFAST_ASSIGN_OR_RETURN(Graph* const graph, Dispatch(id, n));
  HOLDFAST_RETURN_IF_ERROR(graph->Replay());
  return Served::kReplay;
}

absl::Status GraphSet::RunAboveLargest(const Family& family, int n) {
  const auto run = [&]() -> absl::Status {
    HOLDFAST_ASSIGN_OR_RETURN(Bucket measured, MeasureBucket(KeyOf(family.family, n)));
    const std::string name = measured.key.Name();
    HOLDFAST_RETURN_IF_ERROR(CheckScratchFits(workspace_, name, measured.plan.height));
    // What the last eager run holds may be in use until the lane is through with it.
    if (eager_ != nullptr) HOLDFAST_RETURN_IF_ERROR(Annotate(lane_.Synchronize(), name));
    eager_ = std::make_unique<Bucket>(std::move(measured));
    return RunEager(lane_, name, eager_->step, OptionsOf(*eager_, workspace_));
  };
  const absl::Status status = run();
  if (!status.ok()) {
    ++counts_.refused;
    return status;
  }
  ++counts_.eager_runs;
  counts_.eager_rows += static_cast<std::uint64_t>(n);
  return status;
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

ExecutableMemory GraphSet::executable_memory() const {
  ExecutableMemory memory;
  for (const Graph* graph : graphs()) memory += graph->executable_memory();
  return memory;
}

void GraphSet::Close() {
  for (Graph* graph : graphs()) graph->Close();
  closed_ = true;
}

}  // namespace holdfast
