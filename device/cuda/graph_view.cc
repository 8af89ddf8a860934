#include "device/cuda/graph_view.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/cuda/node_reader.h"

namespace holdfast {
namespace {

using Edges = std::vector<std::pair<std::size_t, std::size_t>>;

// What stands for one driver node in the flat graph: itself, or the first and last nodes of its
// child graph.
struct Place {
  std::vector<std::size_t> entries;  // what its predecessors point to
  std::vector<std::size_t> exits;    // what its successors come from
};

absl::StatusOr<std::vector<CUgraphNode>> Nodes(const DriverTable& driver, CUgraph graph) {
  std::size_t count = 0;
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(driver.GraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes"));
  std::vector<CUgraphNode> nodes(count);
  if (count == 0) return nodes;
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(driver.GraphGetNodes(graph, nodes.data(), &count), "cuGraphGetNodes"));
  nodes.resize(count);
  return nodes;
}

struct DriverEdges {
  std::vector<CUgraphNode> from, to;
};

absl::StatusOr<DriverEdges> GetEdges(const DriverTable& driver, CUgraph graph) {
  std::size_t count = 0;
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(driver.GraphGetEdges(graph, nullptr, nullptr, nullptr, &count), "cuGraphGetEdges"));
  DriverEdges edges;
  if (count == 0) return edges;
  edges.from.resize(count);
  edges.to.resize(count);
  // Asked for although unused: a graph with programmatic edges does not answer without.
  std::vector<CUgraphEdgeData> data(count);
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(driver.GraphGetEdges(graph, edges.from.data(), edges.to.data(), data.data(), &count),
               "cuGraphGetEdges"));
  edges.from.resize(count);
  edges.to.resize(count);
  return edges;
}

// Appends a graph, and the graphs inside it, to flat lists.
class Flattener {
 public:
  Flattener(const CudaContext& context, FunctionLayouts& layouts)
      : context_(context), layouts_(layouts) {}

  // The place of the whole graph: its roots and leaves. Empty for a graph without nodes.
  absl::StatusOr<Place> Append(CUgraph graph) {
    const DriverTable& driver = context_.driver();
    HOLDFAST_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, Nodes(driver, graph));
    HOLDFAST_ASSIGN_OR_RETURN(const DriverEdges edges, GetEdges(driver, graph));

    std::vector<Place> places;
    std::unordered_map<CUgraphNode, std::size_t> index;
    for (CUgraphNode node : nodes) {
      HOLDFAST_ASSIGN_OR_RETURN(Place place, AppendNode(node));
      index[node] = places.size();
      places.push_back(std::move(place));
    }

    std::vector<bool> has_predecessor(nodes.size()), has_successor(nodes.size());
    for (std::size_t i = 0; i < edges.from.size(); ++i) {
      const auto from = index.find(edges.from[i]);
      const auto to = index.find(edges.to[i]);
      if (from == index.end() || to == index.end()) {
        return MakeError({.kind = ErrorKind::kDriver, .object = "graph", .call = "cuGraphGetEdges"},
                         "an edge to a node that is not in the graph");
      }
      has_successor[from->second] = true;
      has_predecessor[to->second] = true;
      for (std::size_t exit : places[from->second].exits) {
        for (std::size_t entry : places[to->second].entries) edges_.emplace_back(exit, entry);
      }
    }

    Place whole;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto& [entries, exits] = places[i];
      if (!has_predecessor[i])
        whole.entries.insert(whole.entries.end(), entries.begin(), entries.end());
      if (!has_successor[i]) whole.exits.insert(whole.exits.end(), exits.begin(), exits.end());
    }
    return whole;
  }

  std::vector<NodeView> TakeNodes() { return std::move(nodes_); }
  Edges TakeEdges() { return std::move(edges_); }

 private:
  absl::StatusOr<Place> AppendNode(CUgraphNode node) {
    const DriverTable& driver = context_.driver();
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    HOLDFAST_RETURN_IF_ERROR(ToStatus(driver.GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) return AppendChild(node);
    HOLDFAST_ASSIGN_OR_RETURN(NodeView view, ReadNode(context_, layouts_, node, type));
    return Add(std::move(view));
  }

  absl::StatusOr<Place> AppendChild(CUgraphNode node) {
    CUgraph child = nullptr;
    const absl::Status status =
        ToStatus(context_.driver().GraphChildGraphNodeGetGraph(node, &child),
                 "cuGraphChildGraphNodeGetGraph");
    if (IsErrorKind(status, ErrorKind::kDeviceLost)) return status;
    NodeView stand_in;
    if (!status.ok()) {
      stand_in.kind = NodeKind::kChild;
      stand_in.name = NodeKindName(NodeKind::kChild);
      return Add(std::move(stand_in));
    }
    HOLDFAST_ASSIGN_OR_RETURN(Place place, Append(child));
    if (!place.entries.empty()) return place;
    // A child without nodes still orders what is before it and what is after it.
    stand_in.name = NodeKindName(NodeKind::kEmpty);
    return Add(std::move(stand_in));
  }

  Place Add(NodeView view) {
    nodes_.push_back(std::move(view));
    return {{nodes_.size() - 1}, {nodes_.size() - 1}};
  }

  const CudaContext& context_;
  FunctionLayouts& layouts_;
  std::vector<NodeView> nodes_;
  Edges edges_;
};

// Kahn's algorithm; of the nodes that are ready, the one the driver listed first comes first.
absl::StatusOr<GraphView> Sort(std::vector<NodeView> nodes, const Edges& edges) {
  std::vector<std::vector<std::size_t>> successors(nodes.size());
  std::vector<std::size_t> waits_for(nodes.size());
  for (const auto& [from, to] : edges) {
    successors[from].push_back(to);
    ++waits_for[to];
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (waits_for[i] == 0) ready.push(i);
  }
  GraphView view;
  std::vector<std::size_t> position(nodes.size());
  while (!ready.empty()) {
    const std::size_t node = ready.top();
    ready.pop();
    position[node] = view.nodes.size();
    view.nodes.push_back(std::move(nodes[node]));
    for (std::size_t next : successors[node]) {
      if (--waits_for[next] == 0) ready.push(next);
    }
  }
  if (view.nodes.size() != nodes.size()) {
    return MakeError({.kind = ErrorKind::kDriver, .object = "graph", .call = "cuGraphGetEdges"},
                     "the edges form a cycle");
  }
  for (const auto& [from, to] : edges) view.edges.emplace_back(position[from], position[to]);
  std::sort(view.edges.begin(), view.edges.end());
  return view;
}

}  // namespace

absl::StatusOr<GraphView> ReadGraph(const CudaContext& context, FunctionLayouts& layouts,
                                    CUgraph graph) {
  Flattener flattener(context, layouts);
  HOLDFAST_RETURN_IF_ERROR(flattener.Append(graph).status());
  std::vector<NodeView> nodes = flattener.TakeNodes();
  return Sort(std::move(nodes), flattener.TakeEdges());
}

}  // namespace holdfast
