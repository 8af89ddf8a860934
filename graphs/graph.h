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
#include "graphs/compare.h"
#include "graphs/executable_memory.h"
#include "graphs/graph_key.h"
#include "graphs/lane.h"
#include "graphs/manifest.h"

namespace holdfast {

struct CaptureOptions {
  const ScratchPlan* plan = nullptr;  // from MeasureStep; null for a step without scratch
  SpanId scratch;  // the workspace span that serves it; unused if the plan is empty
  std::vector<ExternalRange> externals;
  AuditPolicy policy;
  LegacyStream legacy_stream = LegacyStream::kRefuse;  // what becomes of work on it meanwhile
  std::uint64_t shift = 0;  // capture as if the arena lay this much higher (tier 2); not for replay
};

// Enqueues the step once on the lane's stream with its planned scratch: warm-up. Does not
// synchronise. Needs every tag of the arena awake (kAsleep, kUndefinedContents, kBusy otherwise):
// what an unaudited step touches is not known. kBusy while the lane captures. After an error part
// of the step may have been enqueued.
absl::Status RunEager(Lane& lane, const std::string& name, const Step& step,
                      const CaptureOptions& options);

// Captures the step and returns the nodes only. An error anywhere (the step's, the driver's, a plan
// mismatch, an exception) leaves no trace: the lane's stream is usable and the next capture gets
// the same addresses. Errors name the graph; kUncapturable is a step that allocates, waits, uses
// the legacy stream or leaves a fork unjoined. kBusy while a transition or another capture of the
// lane is under way; no transition begins before the end.
absl::StatusOr<std::unique_ptr<CapturedGraph>> CaptureStep(Lane& lane, const std::string& name,
                                                           const Step& step,
                                                           const CaptureOptions& options);

// How long the parts of a capture took, in seconds.
struct CaptureTimes {
  double capture = 0;  // the step, from begin to end
  double audit = 0;    // reading the nodes included
  double instantiate = 0;
  double upload = 0;
};

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

  // Compares with the same step captured `shift` bytes higher (tier 2 of the audit). Pointers it
  // finds that the first audit could not see join the manifest, and their tags with them. Not while
  // it is replayed.
  absl::StatusOr<ShiftReport> ProveShifted(const GraphView& shifted, std::uint64_t shift);
  const ExecutableMemory& executable_memory() const { return executable_memory_; }
  const CaptureTimes& times() const { return times_; }

  // Enqueues one replay to its lane's stream. Enters the gate, then checks the epoch, then
  // launches: no interleaving with sleep can launch into unmapped memory. Errors name graph and tag
  // and make no device call: kBusy (a transition is under way), kAsleep, kUndefinedContents,
  // kNotFound (a span of it was freed), kClosed. One thread of a lane at a time.
  absl::Status Replay();
  // The same on another stream, which waits for the lane's work, and the lane for it. Besides:
  // kInvalidArgument for a stream of another device, or where the lane refuses other streams.
  absl::Status ReplayOn(Stream& stream);
  // The launch alone, unguarded and uncounted: for benchmarks. Valid until it is closed.
  BareLaunch GetBareLaunch() { return device_.GetBareLaunch(lane_.stream(), *executable_); }
  // Waits for its replays and gives the executable up; replays are refused from then on. The
  // template and the manifest stay readable.
  void Close();
  bool closed() const { return executable_ == nullptr; }

 private:
  Graph(Lane& lane, GraphKey key)
      : lane_(lane),
        device_(lane.device()),
        arena_(lane.arena()),
        key_(std::move(key)),
        name_(key_.Name()) {}

  absl::Status Instantiate();
  // For the caller inside the gate.
  absl::Status CheckAdmitted();
  absl::Status VerifyTags(std::uint64_t epoch);
  absl::Status Launch(Stream& stream);
  absl::Status RefuseClosed() const;
  absl::Status RefuseBusy() const;

  // kNotFound naming a span that was freed since the capture.
  absl::Status CheckSpans() const;

  Lane& lane_;
  // Copies of what the lane refers to: a replay reads as little memory as it can.
  Device& device_;
  Arena& arena_;
  GraphKey key_;
  std::string name_;
  std::unique_ptr<CapturedGraph> captured_;
  std::unique_ptr<ExecutableGraph> executable_;
  GraphManifest manifest_;
  std::uint64_t frees_ = 0;  // of the arena, at the capture
  ExecutableMemory executable_memory_;
  CaptureTimes times_;
  std::atomic<std::uint64_t> verified_epoch_{
      0};  // its tags were ready at this epoch; 0 = never checked
  std::atomic<std::uint64_t> replays_{0};
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_GRAPH_H_
