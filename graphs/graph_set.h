// The graphs of one lane: every bucket of every phase, planned together, captured largest first,
// dispatched in O(1), padding counted.
#ifndef HOLDFAST_GRAPHS_GRAPH_SET_H_
#define HOLDFAST_GRAPHS_GRAPH_SET_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graphs/buckets.h"
#include "graphs/graph.h"

namespace holdfast {

// Makes the step of one bucket. Called before measuring; the step is kept as long as the set.
using StepFactory = std::function<absl::StatusOr<Step>(const GraphKey& key)>;

struct DispatchCounts {
  std::uint64_t replays = 0;
  std::uint64_t real_rows = 0;
  std::uint64_t pad_rows = 0;
  std::uint64_t refused = 0;  // larger than the largest bucket
};

// Belongs to one thread at a time, as its lane does. The lane must outlive it.
//
//   AddPhase... --Measure--> scratch_bytes() known --(commit the workspace)--> WarmUp --Capture-->
//   Dispatch
class GraphSet {
 public:
  GraphSet(Lane& lane, StepFactory factory) : lane_(lane), factory_(std::move(factory)) {}

  // Declares a phase and its buckets. Once a phase (kAlreadyExists), before Measure (kLocked).
  absl::Status AddPhase(Phase phase, BucketList buckets);
  // Measures every bucket; afterwards scratch_bytes() is what the lane's workspace span must hold:
  // the largest bucket's height, since buckets of a lane overlay each other. On failure nothing is
  // measured. kLocked once graphs are captured. The scratch figures and WarmUp, Capture need it.
  absl::Status Measure();
  std::uint64_t scratch_bytes() const { return scratch_bytes_; }  // the maximum
  std::uint64_t scratch_sum_bytes() const {
    return scratch_sum_;
  }                                                  // what separate scratch would take
  double plan_ratio() const { return plan_ratio_; }  // worst height / lower bound
  // Runs every bucket once eagerly, largest first, and waits: warm-up and profile. kOutOfExtent
  // (need, have) if the workspace is smaller than scratch_bytes(); it is unused, and may be the
  // default, if that is 0. `before_each`, if set, prepares the inputs of a bucket; nothing is
  // running when it is called.
  absl::Status WarmUp(SpanId workspace,
                      const std::function<void(const GraphKey&)>& before_each = {});
  // Captures every bucket, largest first, audits each. On failure no graph of this call stays.
  // Once: kAlreadyExists.
  absl::Status Capture(SpanId workspace, const std::vector<ExternalRange>& externals = {});

  // The graph of the smallest bucket that holds n rows or tokens, in O(1). kInvalidArgument for n <
  // 1 or above the largest (counted as refused), naming n and the largest bucket; kNotFound if the
  // phase was not captured. Counts a replay of it, with its padding.
  absl::StatusOr<Graph*> Dispatch(Phase phase, int n);
  Graph* Find(const GraphKey& key) const;  // null if not captured
  std::vector<Graph*> graphs() const;      // in key order
  const DispatchCounts& counts() const { return counts_; }

  // Captures every bucket again and compares with what was captured first: every differing word, as
  // "graph: node: what". Empty if each node's words are the same.
  absl::StatusOr<std::vector<std::string>> Recapture(SpanId workspace);
  // Captures every bucket at `shift` and proves that exactly the arena's words moved, by exactly
  // the shift: what did not, as "graph: node: what". No transition runs meanwhile; the arena's
  // pages are mapped a second time for its length. `shift` is a multiple of the granularity and no
  // less than the window's size. kAddressTaken if that range of addresses is in use.
  absl::StatusOr<std::vector<std::string>> ShiftedCapture(SpanId workspace, std::uint64_t shift);

 private:
  struct Bucket {
    GraphKey key;
    Step step;
    ScratchPlan plan;
    std::unique_ptr<Graph> graph;  // null until captured
  };
  struct PhaseTable {
    BucketList buckets;
    std::vector<Graph*> by_size;  // [bucket size]; empty until captured
  };

  absl::StatusOr<Bucket> MeasureBucket(const GraphKey& key);
  std::vector<Bucket*> LargestFirst();
  absl::Status CheckWorkspace(SpanId workspace) const;
  absl::Status CheckCaptured() const;

  Lane& lane_;
  StepFactory factory_;
  std::map<Phase, PhaseTable> phases_;
  std::map<GraphKey, Bucket> buckets_;  // measured
  bool captured_ = false;
  std::uint64_t scratch_bytes_ = 0, scratch_sum_ = 0;
  double plan_ratio_ = 1;
  DispatchCounts counts_;
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_GRAPH_SET_H_
