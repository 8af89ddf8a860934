#include "graphs/manifest.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "graphs/node_words.h"

namespace holdfast {
namespace {

std::vector<std::string> Sorted(const std::set<std::string>& names) {
  return {names.begin(), names.end()};
}

void NameNodes(const GraphView& view, GraphManifest& manifest) {
  std::map<NodeName, std::uint32_t> known;
  manifest.name_of.reserve(view.nodes.size());
  for (const NodeView& node : view.nodes) {
    const char* const kind = NodeKindName(node.kind);
    ++manifest.nodes_by_kind[kind];
    const auto [name, added] =
        known.try_emplace({kind, node.name, node.scope}, static_cast<std::uint32_t>(known.size()));
    if (added) manifest.node_names.push_back(name->first);
    manifest.name_of.push_back(name->second);
  }
}

// Spans and tags as sorted lists without repeats.
void SetSpans(GraphManifest& manifest, const std::set<std::string>& spans, const Arena* arena) {
  std::set<std::string> tags;
  for (const std::string& span : spans) {
    if (arena == nullptr) break;
    if (const std::optional<SpanId> id = arena->Find(span); id.has_value()) {
      tags.insert(arena->span(*id).spec.tag);
    }
  }
  manifest.spans = Sorted(spans);
  manifest.tags = Sorted(tags);
}

bool Same(const PackedPointer& a, const PackedPointer& b) {
  return a.node == b.node && a.parameter == b.parameter && a.byte == b.byte;
}

}  // namespace

GraphManifest MakeManifest(const std::string& name, const GraphView& view, AuditReport audit,
                           const Arena* arena) {
  GraphManifest manifest{.name = name, .nodes = view.nodes.size()};
  NameNodes(view, manifest);
  manifest.edges = view.edges;
  SetSpans(manifest, audit.spans(), arena);
  manifest.host_spans = Sorted(audit.objects_of(PointerClass::kHostSpan));
  manifest.audit = std::move(audit);
  return manifest;
}

void AddPacked(GraphManifest& manifest, const std::vector<PackedPointer>& packed,
               const Arena& arena) {
  std::set<std::string> spans(manifest.spans.begin(), manifest.spans.end());
  for (const PackedPointer& pointer : packed) {
    const bool known =
        std::any_of(manifest.packed.begin(), manifest.packed.end(),
                    [&](const PackedPointer& other) { return Same(pointer, other); });
    if (known) continue;
    manifest.packed.push_back(pointer);
    spans.insert(pointer.span);
  }
  SetSpans(manifest, spans, &arena);
}

bool ManifestGraph::is_straight_line() const {
  if (nodes() == 0) return edges.empty();
  if (edges.size() != nodes() - 1) return false;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (edges[i] != std::pair<std::size_t, std::size_t>(i, i + 1)) return false;
  }
  return true;
}

std::string ManifestGraph::NodeLabel(std::size_t node) const {
  const NodeName& name = node_names[name_of[node]];
  return absl::StrCat("node ", node, " (", name.kind, name.name == name.kind ? "" : " ",
                      name.name == name.kind ? "" : name.name, name.scope.empty() ? "" : " in ",
                      name.scope, ")");
}

ManifestGraph Describe(const GraphManifest& graph) {
  ManifestGraph described{.name = graph.name,
                          .node_names = graph.node_names,
                          .name_of = graph.name_of,
                          .edges = graph.edges,
                          .words = graph.audit.words,
                          .writes = graph.audit.writes,
                          .spans = graph.spans,
                          .host_spans = graph.host_spans,
                          .tags = graph.tags};
  for (const PointerFinding& pointer : graph.audit.pointers) {
    described.pointers.push_back({.node = pointer.node,
                                  .where = pointer.where(),
                                  .kind = pointer.kind,
                                  .object = graph.audit.ObjectOf(pointer),
                                  .offset = pointer.offset,
                                  .write = pointer.write});
  }
  for (const PackedPointer& pointer : graph.packed) {
    described.pointers.push_back({.node = pointer.node,
                                  .where = ParameterLabel(pointer.parameter, pointer.byte),
                                  .kind = PointerClass::kSpan,
                                  .object = pointer.span,
                                  .offset = pointer.offset,
                                  .packed = true});
  }
  std::stable_sort(
      described.pointers.begin(), described.pointers.end(),
      [](const ManifestPointer& a, const ManifestPointer& b) { return a.node < b.node; });
  return described;
}

Manifest Describe(const Arena* arena, const std::vector<const GraphManifest*>& graphs) {
  Manifest manifest;
  if (arena != nullptr) {
    const AddressRange window = arena->window();
    manifest.window_base = window.base.value;
    manifest.window_bytes = window.bytes;
    for (const SpanInfo& span : arena->spans()) {
      manifest.spans.push_back({.name = span.spec.name,
                                .tag = span.spec.tag,
                                .role = RoleName(span.spec.role),
                                .offset = span.range.base - window.base,
                                .bytes = span.range.bytes});
    }
  }
  for (const GraphManifest* graph : graphs) manifest.graphs.push_back(Describe(*graph));
  std::stable_sort(manifest.graphs.begin(), manifest.graphs.end(),
                   [](const ManifestGraph& a, const ManifestGraph& b) { return a.name < b.name; });
  return manifest;
}

std::string ManifestJson(const Arena& arena, const std::vector<const GraphManifest*>& graphs) {
  return ManifestJson(Describe(&arena, graphs));
}

}  // namespace holdfast
