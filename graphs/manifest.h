// The manifest: which graph refers to which spans, tags and offsets; JSON for people and for
// comparing runs.
#ifndef HOLDFAST_GRAPHS_MANIFEST_H_
#define HOLDFAST_GRAPHS_MANIFEST_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graphs/audit.h"
#include "graphs/graph_key.h"

namespace holdfast {

struct GraphManifest {
  std::string name;
  std::size_t nodes = 0;
  std::map<std::string, std::uint64_t> nodes_by_kind;
  std::vector<std::string> spans;  // sorted
  std::vector<std::string> tags;   // sorted: what must be awake
  AuditReport audit;
};

GraphManifest MakeManifest(const std::string& name, const GraphView& view, AuditReport audit,
                           const Arena& arena);

// {"window": {"base": "0x2b5d40000000", "bytes": N}, "graphs": [{"name":..., "nodes":...,
//  "nodes_by_kind": {...}, "words":..., "spans": [...], "tags": [...], "pointers_by_class": {...},
//  "pointers": [{"node":..., "where":..., "class":..., "object":..., "offset":..., "write":...}]}]}
// Graphs by name, pointers in node order: equal captures give equal text, wherever host buffers
// lie.
std::string ManifestJson(const Arena& arena, const std::vector<const GraphManifest*>& graphs);

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_MANIFEST_H_
