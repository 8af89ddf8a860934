// The manifest: which graph refers to which spans, tags and offsets; JSON for people and for
// comparing runs.
#ifndef HOLDFAST_GRAPHS_MANIFEST_H_
#define HOLDFAST_GRAPHS_MANIFEST_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graphs/audit.h"
#include "graphs/compare.h"
#include "graphs/graph_key.h"

namespace holdfast {

// What a node is called. Many nodes of a graph share one.
struct NodeName {
  std::string kind, name;  // "kernel", "scale"; of other kinds both are the kind
  std::string scope;       // the nested graph it lies in
  auto operator<=>(const NodeName&) const = default;
};

// One captured graph, kept with it.
struct GraphManifest {
  std::string name;
  std::size_t nodes = 0;
  std::map<std::string, std::uint64_t> nodes_by_kind;
  std::vector<NodeName> node_names;    // each once
  std::vector<std::uint32_t> name_of;  // [node], into node_names
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  std::vector<std::string> spans;       // sorted
  std::vector<std::string> host_spans;  // sorted
  std::vector<std::string> tags;        // sorted: what must be awake
  AuditReport audit;
  std::vector<PackedPointer> packed;  // what a shifted capture added
};

// `arena` may be null: a stand-alone audit knows no tags.
GraphManifest MakeManifest(const std::string& name, const GraphView& view, AuditReport audit,
                           const Arena* arena);
inline GraphManifest MakeManifest(const std::string& name, const GraphView& view, AuditReport audit,
                                  const Arena& arena) {
  return MakeManifest(name, view, std::move(audit), &arena);
}

// Packed pointers that a shifted capture proved: their spans and tags join the others. Those
// already there are not added again.
void AddPacked(GraphManifest& manifest, const std::vector<PackedPointer>& packed,
               const Arena& arena);

// The same for people and files: everything by name.
struct ManifestPointer {
  std::size_t node = 0;
  std::string where;
  PointerClass kind = PointerClass::kNotPointer;
  std::string object;
  std::uint64_t offset = 0;
  bool write = false;
  bool packed = false;
  bool operator==(const ManifestPointer&) const = default;
};

struct ManifestGraph {
  std::string name;
  std::vector<NodeName> node_names;
  std::vector<std::uint32_t> name_of;  // [node]
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  std::uint64_t words = 0, writes = 0;
  std::vector<std::string> spans, host_spans, tags;
  std::vector<ManifestPointer> pointers;  // in node order

  std::size_t nodes() const { return name_of.size(); }
  // Each node follows the one before, and that is all.
  bool is_straight_line() const;
  std::string NodeLabel(std::size_t node) const;  // "node 3 (kernel scale)"
};

struct ManifestSpan {
  std::string name, tag, role;
  std::uint64_t offset = 0, bytes = 0;  // in the window
  bool operator==(const ManifestSpan&) const = default;
};

struct Manifest {
  std::uint64_t window_base = 0, window_bytes = 0;
  std::vector<ManifestSpan> spans;    // in the order they were reserved
  std::vector<ManifestGraph> graphs;  // by name
};

ManifestGraph Describe(const GraphManifest& graph);
// `arena` may be null.
Manifest Describe(const Arena* arena, const std::vector<const GraphManifest*>& graphs);

// {"format": "holdfast graph manifest", "version": 1,
//  "window": {"base": "0x2b5d40000000", "bytes": N},
//  "spans": [{"name":..., "tag":..., "role":..., "offset":..., "bytes":...}],
//  "graphs": [{"name":..., "nodes":..., "nodes_by_kind": {...}, "words":..., "writes":...,
//   "spans": [...], "host_spans": [...], "tags": [...], "pointers_by_class": {...},
//   "node_names": [{"kind":..., "name":..., "scope":...}], "name_of": [...],
//   "edges": "straight line" or [[from, to], ...],
//   "pointers": [{"node":..., "where":..., "class":..., "object":..., "offset":...,
//   "write":...}]}]}
// Graphs by name, pointers in node order: equal captures give equal text, wherever host buffers
// lie.
inline constexpr char kManifestFormat[] = "holdfast graph manifest";
inline constexpr int kManifestVersion = 1;
std::string ManifestJson(const Manifest& manifest);
std::string ManifestJson(const Arena& arena, const std::vector<const GraphManifest*>& graphs);

// What differs, a line each: window, spans, graphs, and of each graph its nodes, edges and
// pointers, naming graph, node, word, span and offset. Empty if nothing does.
std::vector<std::string> DiffManifests(const Manifest& a, const Manifest& b);

// A graph for Graphviz: a box a node, coloured by the spans it points into, and a legend of those.
std::string ManifestDot(const Manifest& manifest, const ManifestGraph& graph);

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_MANIFEST_H_
