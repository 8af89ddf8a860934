#include "runtime/manifest_file.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/error.h"
#include "runtime/json.h"
#include "runtime/text_file.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// A thousand graphs of a thousand nodes; anything above is no manifest of ours.
constexpr JsonLimits kLimits{.max_bytes = kGiB, .max_depth = 8, .max_values = 100'000'000};

// Takes fields out of objects; the first one that is not as it must be is the fault, and from then
// on everything read is empty.
class FieldReader {
 public:
  const std::string& fault() const { return fault_; }
  bool failed() const { return !fault_.empty(); }
  void Fail(const std::string& where, const std::string& what) {
    if (fault_.empty()) fault_ = absl::StrCat(where, " ", what);
  }

  // The field of an object, or null after a fault.
  const Json* Field(const Json& object, const char* name, Json::value_t type) {
    if (failed()) return nullptr;
    const std::string where = absl::StrCat("field ", QuoteName(name));
    if (!object.is_object() || !object.contains(name)) {
      Fail(where, "is missing");
      return nullptr;
    }
    const Json& value = object.at(name);
    if (value.type() == type) return &value;
    Fail(where, "is of the wrong type");
    return nullptr;
  }

  std::string Text(const Json& object, const char* name) {
    const Json* const value = Field(object, name, Json::value_t::string);
    return value == nullptr ? "" : value->get<std::string>();
  }
  std::uint64_t Number(const Json& object, const char* name,
                       std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
    const Json* const value = Field(object, name, Json::value_t::number_unsigned);
    if (value == nullptr) return 0;
    const std::uint64_t number = value->get<std::uint64_t>();
    if (number > most) Fail(absl::StrCat("field ", QuoteName(name)), "is out of range");
    return number <= most ? number : 0;
  }
  bool Flag(const Json& object, const char* name) {
    const Json* const value = Field(object, name, Json::value_t::boolean);
    return value != nullptr && value->get<bool>();
  }

  // Calls each(element) for the elements of an array.
  template <typename Each>
  void List(const Json& object, const char* name, Each each) {
    const Json* const value = Field(object, name, Json::value_t::array);
    if (value == nullptr) return;
    for (const Json& element : *value) {
      if (failed()) return;
      each(element);
    }
  }
  std::vector<std::string> Texts(const Json& object, const char* name) {
    std::vector<std::string> texts;
    List(object, name, [&](const Json& element) {
      if (!element.is_string())
        return Fail(absl::StrCat("field ", QuoteName(name)), "holds no text");
      texts.push_back(element.get<std::string>());
    });
    return texts;
  }

 private:
  std::string fault_;
};

PointerClass ClassNamed(const std::string& name, FieldReader& reader) {
  for (const PointerClass c :
       {PointerClass::kSpan, PointerClass::kHostSpan, PointerClass::kExternal,
        PointerClass::kForeign, PointerClass::kUnmapped, PointerClass::kHost}) {
    if (name == PointerClassName(c)) return c;
  }
  if (!reader.failed()) reader.Fail("class " + QuoteName(name), "is not known");
  return PointerClass::kNotPointer;
}

// An element of an array that must be an index below `count`.
std::uint64_t Index(const Json& element, std::uint64_t count, const char* what,
                    FieldReader& reader) {
  if (!element.is_number_unsigned() || element.get<std::uint64_t>() >= count) {
    reader.Fail(absl::StrCat("field ", QuoteName(what)), "holds an index that leads nowhere");
    return 0;
  }
  return element.get<std::uint64_t>();
}

void ReadEdges(const Json& json, ManifestGraph& graph, FieldReader& reader) {
  if (reader.failed()) return;
  if (json.is_object() && json.contains("edges") && json.at("edges") == "straight line") {
    for (std::size_t i = 1; i < graph.nodes(); ++i) graph.edges.emplace_back(i - 1, i);
    return;
  }
  reader.List(json, "edges", [&](const Json& edge) {
    if (!edge.is_array() || edge.size() != 2) return reader.Fail("an edge", "is no pair");
    graph.edges.emplace_back(Index(edge[0], graph.nodes(), "edges", reader),
                             Index(edge[1], graph.nodes(), "edges", reader));
  });
}

ManifestPointer ReadPointer(const Json& json, const ManifestGraph& graph, FieldReader& reader) {
  const std::uint64_t last = graph.nodes() == 0 ? 0 : graph.nodes() - 1;
  ManifestPointer pointer{.node = reader.Number(json, "node", last),
                          .where = reader.Text(json, "where"),
                          .kind = ClassNamed(reader.Text(json, "class"), reader),
                          .object = reader.Text(json, "object"),
                          .offset = reader.Number(json, "offset"),
                          .write = reader.Flag(json, "write")};
  if (graph.nodes() == 0) reader.Fail("a pointer", "is of a graph without nodes");
  if (json.is_object() && json.contains("packed")) pointer.packed = reader.Flag(json, "packed");
  return pointer;
}

ManifestGraph ReadGraph(const Json& json, FieldReader& reader) {
  ManifestGraph graph{.name = reader.Text(json, "name"),
                      .words = reader.Number(json, "words"),
                      .writes = reader.Number(json, "writes"),
                      .spans = reader.Texts(json, "spans"),
                      .host_spans = reader.Texts(json, "host_spans"),
                      .tags = reader.Texts(json, "tags")};
  reader.List(json, "node_names", [&](const Json& name) {
    graph.node_names.push_back(
        {reader.Text(name, "kind"), reader.Text(name, "name"),
         name.is_object() && name.contains("scope") ? reader.Text(name, "scope") : ""});
  });
  reader.List(json, "name_of", [&](const Json& index) {
    graph.name_of.push_back(
        static_cast<std::uint32_t>(Index(index, graph.node_names.size(), "name_of", reader)));
  });
  if (reader.Number(json, "nodes") != graph.nodes()) {
    reader.Fail("field \"nodes\"", "is not the length of \"name_of\"");
  }
  ReadEdges(json, graph, reader);
  reader.List(json, "pointers", [&](const Json& pointer) {
    graph.pointers.push_back(ReadPointer(pointer, graph, reader));
  });
  return graph;
}

void ReadWindow(const Json& json, Manifest& manifest, FieldReader& reader) {
  const Json* const window = reader.Field(json, "window", Json::value_t::object);
  if (window == nullptr) return;
  manifest.window_bytes = reader.Number(*window, "bytes");
  const std::string base = reader.Text(*window, "base");
  if (!reader.failed() && !absl::SimpleHexAtoi(base, &manifest.window_base)) {
    reader.Fail("field \"base\"", "is no address");
  }
}

Manifest ReadFields(const Json& json, FieldReader& reader) {
  Manifest manifest;
  if (!json.is_object() || !json.contains("format") || json.at("format") != kManifestFormat) {
    reader.Fail("it", "is not a graph manifest");
    return manifest;
  }
  if (const std::uint64_t version = reader.Number(json, "version");
      !reader.failed() && version != kManifestVersion) {
    reader.Fail(absl::StrCat("version ", version), "is not read by this build");
  }
  ReadWindow(json, manifest, reader);
  reader.List(json, "spans", [&](const Json& span) {
    manifest.spans.push_back({.name = reader.Text(span, "name"),
                              .tag = reader.Text(span, "tag"),
                              .role = reader.Text(span, "role"),
                              .offset = reader.Number(span, "offset"),
                              .bytes = reader.Number(span, "bytes")});
  });
  reader.List(json, "graphs",
              [&](const Json& graph) { manifest.graphs.push_back(ReadGraph(graph, reader)); });
  return manifest;
}

}  // namespace

absl::StatusOr<Manifest> ParseManifest(const std::string& text, const std::string& document) {
  HOLDFAST_ASSIGN_OR_RETURN(const Json json, ParseJson(text, document, kLimits));
  FieldReader reader;
  Manifest manifest = ReadFields(json, reader);
  if (!reader.failed()) return manifest;
  return MakeError({.kind = ErrorKind::kCorrupted, .object = document}, reader.fault());
}

absl::StatusOr<Manifest> ReadManifest(const std::string& path) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kLimits.max_bytes));
  return ParseManifest(text, path);
}

}  // namespace holdfast
