// A graph that holds fast: template and executable owned together, audited, and guarded at replay.
//
//   measured --PlanScratch--> CaptureGraph --audit ok--> Graph --Replay--> ... (sleep, wake) ...
//   --Replay-->
#ifndef HOLDFAST_GRAPHS_GRAPH_H_
#define HOLDFAST_GRAPHS_GRAPH_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/scratch_session.h"
#include "allocator/step_context.h"
#include "graphs/audit.h"
#include "graphs/graph_key.h"
#include "graphs/lane.h"
#include "graphs/manifest.h"

namespace holdfast {

struct CaptureOptions {
  const ScratchPlan* plan = nullptr;  // from MeasureStep; null for a step without scratch
  SpanId scratch;  // the workspace span that serves it; unused if the plan is empty
  std::vector<ExternalRange> externals;
  AuditPolicy policy;
  std::uint64_t shift = 0;  // capture as if the arena lay this much higher (tier 2); not for replay
};

// Enqueues the step once on the lane's stream with its planned scratch: warm-up. Does not
// synchronise. Needs every tag of the arena awake (kAsleep, kUndefinedContents, kBusy otherwise):
// what an unaudited step touches is not known. After an error part of the step may have been
// enqueued.
absl::Status RunEager(Lane& lane, const std::string& name, const Step& step,
                      const CaptureOptions& options);

// Captures the step and returns the nodes only. An error anywhere (the step's, the driver's, a plan
// mismatch, an exception) leaves no trace: the lane's stream is usable and the next capture gets
// the same addresses. Errors name the graph. kBusy while a transition is under way; none begins
// before the end.
absl::StatusOr<std::unique_ptr<CapturedGraph>> CaptureStep(Lane& lane, const std::string& name,
                                                           const Step& step,
                                                           const CaptureOptions& options);

class Graph {
 public:
  // Captures, audits, instantiates. The lane must outlive the graph. kForeignPointer or
  // kUnauditable name the graph, node and word.
  static absl::StatusOr<std::unique_ptr<Graph>> Capture(Lane& lane, const GraphKey& key,
                                                        const Step& step,
                                                        const CaptureOptions& options);
  ~Graph();  // waits for its replays
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const GraphKey& key() const { return key_; }
  const std::string& name() const { return name_; }
  Lane& lane() const { return lane_; }
  const GraphManifest& manifest() const { return manifest_; }
  const CapturedGraph& captured() const { return *captured_; }
  std::uint64_t replays() const { return replays_.load(std::memory_order_relaxed); }

  // Enqueues one replay to its lane's stream. Enters the gate, then checks the epoch, then
  // launches: no interleaving with sleep can launch into unmapped memory. Errors name graph and tag
  // and make no device call: kBusy (a transition is under way), kAsleep, kUndefinedContents,
  // kNotFound (a span of it was freed). One thread of a lane at a time.
  absl::Status Replay();

 private:
  Graph(Lane& lane, GraphKey key) : lane_(lane), key_(std::move(key)), name_(key_.Name()) {}

  // kNotFound naming a span that was freed since the capture.
  absl::Status CheckSpans() const;

  Lane& lane_;
  GraphKey key_;
  std::string name_;
  std::unique_ptr<CapturedGraph> captured_;
  std::unique_ptr<ExecutableGraph> executable_;
  GraphManifest manifest_;
  std::uint64_t frees_ = 0;  // of the arena, at the capture
  std::atomic<std::uint64_t> verified_epoch_{
      0};  // its tags were ready at this epoch; 0 = never checked
  std::atomic<std::uint64_t> replays_{0};
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_GRAPH_H_
