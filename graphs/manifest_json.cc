#include <nlohmann/json.hpp>

#include "graphs/manifest.h"
#include "graphs/node_words.h"

namespace holdfast {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order they are written here

Json PointerJson(const ManifestPointer& pointer) {
  Json json = {{"node", pointer.node},
               {"where", pointer.where},
               {"class", PointerClassName(pointer.kind)},
               {"object", pointer.object},
               {"offset", pointer.offset},
               {"write", pointer.write}};
  if (pointer.packed) json["packed"] = true;
  return json;
}

Json NameJson(const NodeName& name) {
  Json json = {{"kind", name.kind}, {"name", name.name}};
  if (!name.scope.empty()) json["scope"] = name.scope;
  return json;
}

Json GraphJson(const ManifestGraph& graph) {
  Json pointers = Json::array(), names = Json::array(), classes = Json::object();
  std::map<PointerClass, std::uint64_t> count_by_class;
  for (const ManifestPointer& pointer : graph.pointers) {
    pointers.push_back(PointerJson(pointer));
    ++count_by_class[pointer.kind];
  }
  for (const auto& [kind, count] : count_by_class) classes[PointerClassName(kind)] = count;
  for (const NodeName& name : graph.node_names) names.push_back(NameJson(name));
  std::map<std::string, std::uint64_t> nodes_by_kind;
  for (std::uint32_t name : graph.name_of) ++nodes_by_kind[graph.node_names[name].kind];
  return {{"name", graph.name},
          {"nodes", graph.nodes()},
          {"nodes_by_kind", nodes_by_kind},
          {"words", graph.words},
          {"writes", graph.writes},
          {"spans", graph.spans},
          {"host_spans", graph.host_spans},
          {"tags", graph.tags},
          {"pointers_by_class", std::move(classes)},
          {"node_names", std::move(names)},
          {"name_of", graph.name_of},
          {"edges", graph.is_straight_line() ? Json("straight line") : Json(graph.edges)},
          {"pointers", std::move(pointers)}};
}

}  // namespace

std::string ManifestJson(const Manifest& manifest) {
  Json graphs = Json::array(), spans = Json::array();
  for (const ManifestGraph& graph : manifest.graphs) graphs.push_back(GraphJson(graph));
  for (const ManifestSpan& span : manifest.spans) {
    spans.push_back({{"name", span.name},
                     {"tag", span.tag},
                     {"role", span.role},
                     {"offset", span.offset},
                     {"bytes", span.bytes}});
  }
  const Json json = {
      {"format", kManifestFormat},
      {"version", kManifestVersion},
      {"window", {{"base", HexWord(manifest.window_base)}, {"bytes", manifest.window_bytes}}},
      {"spans", std::move(spans)},
      {"graphs", std::move(graphs)}};
  // Span names are the user's; what is no UTF-8 in them must not make this throw.
  return json.dump(1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace holdfast
