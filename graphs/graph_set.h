// The graph manager of one lane: every bucket of every family, planned together, captured largest
// first, dispatched in O(1); replays, pads and eager fallbacks counted.
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
  std::uint64_t replays = 0;     // dispatched to a graph
  std::uint64_t real_rows = 0;   // of those
  std::uint64_t pad_rows = 0;    // of those: what the buckets held beyond the real rows
  std::uint64_t eager_runs = 0;  // above the largest bucket, run without a graph
  std::uint64_t eager_rows = 0;
  std::uint64_t empty = 0;     // served with no rows: nothing was launched
  std::uint64_t refused = 0;   // no bucket holds it, and no eager run was wanted or possible
  std::uint64_t captures = 0;  // graphs captured for replay; stands still after Capture
};

struct GraphSetOptions {
  // Serve runs what is above the largest bucket eagerly, if its scratch fits the workspace; false
  // refuses it. An eager run measures and enqueues the step anew each time.
  bool eager_above_largest = false;
  AuditPolicy policy;
  LegacyStream legacy_stream = LegacyStream::kRefuse;
};

// Names a family of one set, for dispatch without a look-up.
struct FamilyId {
  std::size_t index = 0;
};

enum class Served {
  kNothing,  // there were no rows
  kReplay,
  kEager,
};

// Belongs to one thread at a time, as its lane does. The lane must outlive it.
//
//   AddFamily... --Measure--> scratch_bytes() known --(commit the workspace)--> WarmUp --Capture-->
//   Serve or Dispatch... --Close--> refuses
class GraphSet {
 public:
  GraphSet(Lane& lane, StepFactory factory, GraphSetOptions options = {})
      : lane_(lane), factory_(std::move(factory)), options_(std::move(options)) {}

  // Declares a family and its buckets. Once a family (kAlreadyExists), before Measure (kLocked);
  // kInvalidArgument for a query length below 1.
  absl::StatusOr<FamilyId> AddFamily(const GraphFamily& family, BucketList buckets);
  // The family of a phase with neither query length nor variant.
  absl::Status AddPhase(Phase phase, BucketList buckets) {
    return AddFamily({.phase = phase}, std::move(buckets)).status();
  }
  // Measures every bucket; afterwards scratch_bytes() is what the lane's workspace span must hold:
  // the largest bucket's height, since buckets of a lane overlay each other. On failure nothing is
  // measured. kLocked once graphs are captured. The scratch figures and WarmUp, Capture need it.
  absl::Status Measure();
  std::uint64_t scratch_bytes() const { return scratch_bytes_; }  // the maximum
  std::uint64_t scratch_sum_bytes() const {
    return scratch_sum_;
  }                                                  // what separate scratch would take
  double plan_ratio() const { return plan_ratio_; }  // worst height / lower bound
  // Enqueued by all buckets together: about the nodes their graphs will have (a matrix product may
  // become several).
  std::uint64_t operations() const { return operations_; }
  // Runs every bucket once eagerly, largest first, and waits: warm-up and profile. kOutOfExtent
  // (need, have) if the workspace is smaller than scratch_bytes(); it is unused, and may be the
  // default, if that is 0. `before_each`, if set, prepares the inputs of a bucket; nothing is
  // running when it is called.
  absl::Status WarmUp(SpanId workspace,
                      const std::function<void(const GraphKey&)>& before_each = {});
  // Captures every bucket, largest first, audits each, and locks the arena. What was not warmed up
  // yet is, with whatever its inputs hold: no library is used or module loaded for the first time
  // in a capture. On failure no graph of this call stays. Once: kAlreadyExists.
  absl::Status Capture(SpanId workspace, const std::vector<ExternalRange>& externals = {});

  // The graph of the smallest bucket that holds n rows or tokens, in O(1). kInvalidArgument for n <
  // 1 or above the largest (counted as refused), naming n and the largest bucket; kNotFound if the
  // family was not captured; kClosed. Counts a replay of it, with its padding.
  absl::StatusOr<Graph*> Dispatch(FamilyId family, int n);
  absl::StatusOr<Graph*> Dispatch(Phase phase, int n);
  // Dispatches and replays; n = 0 launches nothing and is no error; n above the largest bucket runs
  // eagerly where the options say so (kOutOfExtent naming the step, need and have if it asks for
  // more scratch than the workspace holds). The pads are the caller's: see padding.h.
  absl::StatusOr<Served> Serve(FamilyId family, int n);
  Graph* Find(const GraphKey& key) const;  // null if not captured
  std::vector<Graph*> graphs() const;      // in key order
  const DispatchCounts& counts() const { return counts_; }
  // Of all graphs together.
  ExecutableMemory executable_memory() const;
  // Waits for the lane and gives every executable up. Dispatch and every Graph::Replay refuse from
  // then on, as kClosed; graphs stay readable until the set dies.
  void Close();

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
  struct Family {
    GraphFamily family;
    BucketList buckets;
    std::vector<Graph*> by_size;  // [bucket size]; empty until captured
  };

  absl::StatusOr<Bucket> MeasureBucket(const GraphKey& key);
  std::vector<Bucket*> LargestFirst();
  CaptureOptions OptionsOf(const Bucket& bucket, SpanId workspace) const;
  absl::Status CheckWorkspace(SpanId workspace) const;
  absl::Status CheckScratchFits(SpanId workspace, const std::string& who,
                                std::uint64_t bytes) const;
  absl::Status CheckCaptured() const;
  absl::Status CheckServes(FamilyId family) const;
  absl::Status Refuse(const Family& family, int n);
  absl::Status RunAboveLargest(const Family& family, int n);

  Lane& lane_;
  StepFactory factory_;
  GraphSetOptions options_;
  std::vector<Family> families_;        // as declared
  std::map<GraphKey, Bucket> buckets_;  // measured
  SpanId workspace_;                    // since Capture
  bool warm_ = false, captured_ = false, closed_ = false;
  std::unique_ptr<Bucket> eager_;  // the last eager run: it may still be under way
  std::uint64_t scratch_bytes_ = 0, scratch_sum_ = 0, operations_ = 0;
  double plan_ratio_ = 1;
  DispatchCounts counts_;
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_GRAPH_SET_H_
