// A capture on the host device: the nodes recorded so far, by all the streams that take part, and
// which follows which.
//
// A stream's place in it is a frontier: the nodes that its next one follows. Recording an event
// keeps a copy of the frontier; waiting for it adds that copy to another stream's.
#ifndef HOLDFAST_DEVICE_HOST_HOST_CAPTURE_H_
#define HOLDFAST_DEVICE_HOST_HOST_CAPTURE_H_

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/host/work.h"

namespace holdfast {

// Nodes in the order they were recorded, which is a topological one. Edges are (from, to), sorted.
struct RecordedGraph {
  std::vector<Work> nodes;
  std::vector<std::pair<std::size_t, std::size_t>> edges;

  // A topological order that runs branches in turn, a node of each: what branches must not share
  // shows. The recorded order if there is one branch only.
  std::vector<std::size_t> ReplayOrder() const;
};

// Thread-safe. Streams and events share it.
class HostCapture {
 public:
  using Frontier = std::vector<std::size_t>;  // ascending, unique

  // Appends a node that follows `frontier`, which becomes the node. kUncapturable once spoiled.
  absl::Status Append(const std::string& stream, Frontier& frontier, Work work);
  // What the capture is cannot become a graph any more; the first reason stays. Returns the error
  // of the call that did it.
  absl::Status Spoil(const std::string& stream, const std::string& what);
  bool ended() const;
  // The graph, if nothing spoiled it and every node comes before the end of the stream that began
  // it: kUncapturable naming streams and operations otherwise. Once; ended either way.
  absl::StatusOr<RecordedGraph> End(const std::string& stream, const Frontier& frontier);

  static void Merge(Frontier& into, const Frontier& from);

 private:
  absl::Status CheckJoined(const std::string& stream, const Frontier& frontier) const;

  mutable std::mutex mutex_;
  bool ended_ = false;
  std::string spoiled_by_;
  RecordedGraph graph_;
  std::vector<std::string> streams_;  // of each node
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_HOST_CAPTURE_H_
