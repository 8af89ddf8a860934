#include "device/cuda/graph_view.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/cuda/node_reader.h"

namespace holdfast {
namespace {

using Edges = std::vector<std::pair<std::size_t, std::size_t>>;

// What stands for one driver node in the flat graph: itself, or the first and last nodes of the
// graphs inside it.
struct Place {
  std::size_t single = 0;            // if both lists are empty
  std::vector<std::size_t> entries;  // what its predecessors point to
  std::vector<std::size_t> exits;    // what its successors come from

  std::span<const std::size_t> first() const {
    return entries.empty() ? std::span(&single, 1) : std::span(entries);
  }
  std::span<const std::size_t> last() const {
    return exits.empty() ? std::span(&single, 1) : std::span(exits);
  }
};

// The first and last nodes of a whole graph; none of a graph without nodes.
struct Ends {
  std::vector<std::size_t> entries, exits;
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

// "child 3" inside "child 1" is "child 1/child 3".
std::string Inside(const std::string& scope, const std::string& what) {
  return scope.empty() ? what : absl::StrCat(scope, "/", what);
}

// Appends a graph, and the graphs inside it, to flat lists.
class Flattener {
 public:
  Flattener(const CudaContext& context, FunctionLayouts& layouts)
      : context_(context), layouts_(layouts) {}

  absl::StatusOr<Ends> Append(CUgraph graph, const std::string& scope) {
    const DriverTable& driver = context_.driver();
    HOLDFAST_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, Nodes(driver, graph));
    HOLDFAST_ASSIGN_OR_RETURN(const DriverEdges edges, GetEdges(driver, graph));

    std::vector<Place> places(nodes.size());
    std::vector<std::pair<CUgraphNode, std::size_t>> index;  // of each node, by handle
    index.reserve(nodes.size());
    nodes_.reserve(nodes_.size() + nodes.size());
    edges_.reserve(edges_.size() + edges.from.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      HOLDFAST_ASSIGN_OR_RETURN(places[i], AppendNode(nodes[i], i, scope));
      index.emplace_back(nodes[i], i);
    }
    std::sort(index.begin(), index.end());
    const auto find = [&index](CUgraphNode node) {
      const auto found =
          std::lower_bound(index.begin(), index.end(), std::pair{node, std::size_t{0}});
      return found != index.end() && found->first == node ? found : index.end();
    };

    std::vector<bool> has_predecessor(nodes.size()), has_successor(nodes.size());
    for (std::size_t i = 0; i < edges.from.size(); ++i) {
      const auto from = find(edges.from[i]);
      const auto to = find(edges.to[i]);
      if (from == index.end() || to == index.end()) {
        return MakeError({.kind = ErrorKind::kDriver, .object = "graph", .call = "cuGraphGetEdges"},
                         "an edge to a node that is not in the graph");
      }
      has_successor[from->second] = true;
      has_predecessor[to->second] = true;
      for (std::size_t exit : places[from->second].last()) {
        for (std::size_t entry : places[to->second].first()) edges_.emplace_back(exit, entry);
      }
    }

    Ends ends;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto first = places[i].first(), last = places[i].last();
      if (!has_predecessor[i]) ends.entries.insert(ends.entries.end(), first.begin(), first.end());
      if (!has_successor[i]) ends.exits.insert(ends.exits.end(), last.begin(), last.end());
    }
    return ends;
  }

  std::vector<NodeView> TakeNodes() { return std::move(nodes_); }
  Edges TakeEdges() { return std::move(edges_); }

 private:
  // `number` is the node's place in its own graph's list.
  absl::StatusOr<Place> AppendNode(CUgraphNode node, std::size_t number, const std::string& scope) {
    const DriverTable& driver = context_.driver();
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    HOLDFAST_RETURN_IF_ERROR(ToStatus(driver.GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) return AppendChild(node, number, scope);
    if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return AppendConditional(node, number, scope);
    const Place place = Add({}, scope);
    HOLDFAST_RETURN_IF_ERROR(ReadNode(context_, layouts_, node, type, nodes_.back()));
    nodes_.back().scope = scope;
    return place;
  }

  absl::StatusOr<Place> AppendChild(CUgraphNode node, std::size_t number,
                                    const std::string& scope) {
    CUgraph child = nullptr;
    const absl::Status status =
        ToStatus(context_.driver().GraphChildGraphNodeGetGraph(node, &child),
                 "cuGraphChildGraphNodeGetGraph");
    if (IsErrorKind(status, ErrorKind::kDeviceLost)) return status;
    NodeView stand_in;
    if (!status.ok()) {
      stand_in.kind = NodeKind::kChild;
      stand_in.name = NodeKindName(NodeKind::kChild);
      return Add(std::move(stand_in), scope);
    }
    HOLDFAST_ASSIGN_OR_RETURN(Ends ends,
                              Append(child, Inside(scope, absl::StrCat("child ", number))));
    if (!ends.entries.empty()) {
      return Place{.entries = std::move(ends.entries), .exits = std::move(ends.exits)};
    }
    // A child without nodes still orders what is before it and what is after it.
    stand_in.name = NodeKindName(NodeKind::kEmpty);
    return Add(std::move(stand_in), scope);
  }

  // The node itself, then its bodies: any of them may run, or none.
  absl::StatusOr<Place> AppendConditional(CUgraphNode node, std::size_t number,
                                          const std::string& scope) {
    const auto get_params = context_.driver().GraphNodeGetParams;
    if (get_params == nullptr) {
      return Add(UnreadableNode("conditional node",
                                "this driver does not show its bodies; CUDA 13.2 and newer do"),
                 scope);
    }
    CUgraphNodeParams params = {};
    const absl::Status status = ToStatus(get_params(node, &params), "cuGraphNodeGetParams");
    if (IsErrorKind(status, ErrorKind::kDeviceLost)) return status;
    if (!status.ok() ||
        (params.conditional.size > 0 && params.conditional.phGraph_out == nullptr)) {
      return Add(UnreadableNode("conditional node", status.ok() ? "the driver names no bodies"
                                                                : std::string(status.message())),
                 scope);
    }
    NodeView condition;
    condition.kind = NodeKind::kConditional;
    condition.name = NodeKindName(NodeKind::kConditional);
    const std::size_t at = Add(std::move(condition), scope).single;
    Place place{.entries = {at}, .exits = {at}};
    for (unsigned body = 0; body < params.conditional.size; ++body) {
      const std::string name = absl::StrCat("body ", body, " of ", number);
      HOLDFAST_ASSIGN_OR_RETURN(const Ends ends,
                                Append(params.conditional.phGraph_out[body], Inside(scope, name)));
      for (std::size_t entry : ends.entries) edges_.emplace_back(at, entry);
      place.exits.insert(place.exits.end(), ends.exits.begin(), ends.exits.end());
    }
    return place;
  }

  Place Add(NodeView view, const std::string& scope) {
    view.scope = scope;
    nodes_.push_back(std::move(view));
    return {.single = nodes_.size() - 1};
  }

  const CudaContext& context_;
  FunctionLayouts& layouts_;
  std::vector<NodeView> nodes_;
  Edges edges_;
};

// Kahn's algorithm; of the nodes that are ready, the one the driver listed first comes first.
absl::StatusOr<GraphView> Sort(std::vector<NodeView> nodes, Edges edges) {
  // A captured graph lists its nodes in the order they were recorded: nothing to do.
  if (std::all_of(edges.begin(), edges.end(),
                  [](const auto& edge) { return edge.first < edge.second; })) {
    std::sort(edges.begin(), edges.end());
    return GraphView{std::move(nodes), std::move(edges)};
  }
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
  HOLDFAST_RETURN_IF_ERROR(flattener.Append(graph, /*scope=*/"").status());
  std::vector<NodeView> nodes = flattener.TakeNodes();
  return Sort(std::move(nodes), flattener.TakeEdges());
}

}  // namespace holdfast
