#include "graphs/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "graphs/node_words.h"

namespace holdfast {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order they are written here

Json PointerJson(const PointerFinding& pointer) {
  return {{"node", pointer.node},
          {"where", pointer.where},
          {"class", PointerClassName(pointer.kind)},
          {"object", pointer.object},
          {"offset", pointer.offset},
          {"write", pointer.write}};
}

Json GraphJson(const GraphManifest& graph) {
  Json pointers = Json::array();
  for (const PointerFinding& pointer : graph.audit.pointers)
    pointers.push_back(PointerJson(pointer));
  Json classes = Json::object();
  for (const auto& [kind, count] : graph.audit.count_by_class())
    classes[PointerClassName(kind)] = count;
  return {{"name", graph.name},
          {"nodes", graph.nodes},
          {"nodes_by_kind", graph.nodes_by_kind},
          {"words", graph.audit.words},
          {"spans", graph.spans},
          {"tags", graph.tags},
          {"pointers_by_class", std::move(classes)},
          {"pointers", std::move(pointers)}};
}

}  // namespace

GraphManifest MakeManifest(const std::string& name, const GraphView& view, AuditReport audit,
                           const Arena& arena) {
  GraphManifest manifest{.name = name, .nodes = view.nodes.size()};
  for (const NodeView& node : view.nodes) ++manifest.nodes_by_kind[NodeKindName(node.kind)];
  std::set<std::string> tags;
  for (const std::string& span : audit.spans()) {
    manifest.spans.push_back(span);
    if (const std::optional<SpanId> id = arena.Find(span); id.has_value()) {
      tags.insert(arena.span(*id).spec.tag);
    }
  }
  manifest.tags.assign(tags.begin(), tags.end());
  manifest.audit = std::move(audit);
  return manifest;
}

std::string ManifestJson(const Arena& arena, const std::vector<const GraphManifest*>& graphs) {
  std::vector<const GraphManifest*> sorted = graphs;
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const GraphManifest* a, const GraphManifest* b) { return a->name < b->name; });
  Json list = Json::array();
  for (const GraphManifest* graph : sorted) list.push_back(GraphJson(*graph));
  const AddressRange window = arena.window();
  const Json manifest = {
      {"window", {{"base", HexWord(window.base.value)}, {"bytes", window.bytes}}},
      {"graphs", std::move(list)}};
  // Span names are the user's; what is no UTF-8 in them must not make this throw.
  return manifest.dump(1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace holdfast
