#include "device/cuda/cuda_capture.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "device/cuda/kernel_nodes.h"
#include "device/cuda/streams.h"

namespace holdfast {
namespace {

// What the next node of a capturing stream follows.
struct Place {
  CUgraph graph = nullptr;
  std::set<CUgraphNode> follows;
};

Place PlaceOf(const DriverTable& driver, CUstream stream) {
  Place place;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  const CUgraphNode* follows = nullptr;
  // Asked for although unused: a place behind a programmatic edge does not answer without.
  const CUgraphEdgeData* data = nullptr;
  std::size_t count = 0;
  if (driver.StreamGetCaptureInfo(stream, &status, &id, &place.graph, &follows, &data, &count) !=
          CUDA_SUCCESS ||
      status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return {};
  }
  place.follows.insert(follows, follows + count);
  return place;
}

// Nodes of the graph that no other follows.
std::vector<CUgraphNode> Leaves(const DriverTable& driver, CUgraph graph) {
  std::size_t count = 0;
  if (driver.GraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count == 0) return {};
  std::vector<CUgraphNode> nodes(count);
  if (driver.GraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return {};
  std::size_t edges = 0;
  if (driver.GraphGetEdges(graph, nullptr, nullptr, nullptr, &edges) != CUDA_SUCCESS) return {};
  std::vector<CUgraphNode> from(edges), to(edges);
  std::vector<CUgraphEdgeData> data(edges);
  if (edges > 0 &&
      driver.GraphGetEdges(graph, from.data(), to.data(), data.data(), &edges) != CUDA_SUCCESS) {
    return {};
  }
  const std::set<CUgraphNode> followed(from.begin(), from.end());
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [&](CUgraphNode node) { return followed.count(node) > 0; }),
              nodes.end());
  return nodes;
}

}  // namespace

void CudaCapture::Add(const CudaStream* side) {
  std::lock_guard<std::mutex> lock(mutex_);
  sides_.push_back(side);
}

void CudaCapture::Remove(const CudaStream* side) {
  std::lock_guard<std::mutex> lock(mutex_);
  sides_.erase(std::remove(sides_.begin(), sides_.end(), side), sides_.end());
}

std::string CudaCapture::Unjoined(const DriverTable& driver) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const Place end = PlaceOf(driver, origin_->get());
  if (end.graph == nullptr) return "";
  std::string unjoined;
  for (const CUgraphNode leaf : Leaves(driver, end.graph)) {
    if (end.follows.count(leaf) > 0) continue;
    std::string stream = "a stream that this device did not make";
    for (const CudaStream* side : sides_) {
      if (PlaceOf(driver, side->get()).follows.count(leaf) == 0) continue;
      stream = absl::StrCat("stream '", side->name(), "'");
    }
    absl::StrAppend(&unjoined, unjoined.empty() ? "" : ", ", stream,
                    " (its last operation: ", NodeText(driver, leaf), ")");
  }
  return unjoined;
}

}  // namespace holdfast
