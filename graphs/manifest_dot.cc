#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graphs/manifest.h"

namespace holdfast {
namespace {

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c < ' ' ? ' ' : c);
  }
  return out + "\"";
}

// Light colours, each far from those before it: hues a golden section of the circle apart.
std::string Colour(std::size_t index) {
  const double hue = 6 * std::fmod(static_cast<double>(index) * 0.61803398875, 1.0);
  const auto channel = [hue](double shift) {
    const double x = std::fabs(std::fmod(hue + shift, 6.0) - 3) - 1;
    const double saturated = x < 0 ? 0 : x > 1 ? 1 : x;
    return static_cast<int>(255 * (1 - 0.45 * (1 - saturated)));
  };
  return absl::StrFormat("#%02x%02x%02x", channel(0), channel(4), channel(2));
}

constexpr char kNobodys[] = "#ff3030";  // pointers into what nobody declared

bool IsDeclared(PointerClass kind) {
  return kind == PointerClass::kSpan || kind == PointerClass::kHostSpan ||
         kind == PointerClass::kExternal;
}

std::string Legend(const Manifest& manifest, const std::map<std::string, std::string>& colours) {
  std::map<std::string, const ManifestSpan*> spans;
  for (const ManifestSpan& span : manifest.spans) spans.emplace(span.name, &span);
  std::string out = "  subgraph cluster_spans {\n    label=\"spans\";\n";
  std::size_t index = 0;
  for (const auto& [name, colour] : colours) {
    std::string label = name;
    if (const auto span = spans.find(name); span != spans.end()) {
      absl::StrAppend(&label, ", ", span->second->tag, "/", span->second->role, ", ",
                      span->second->bytes, " bytes");
    }
    absl::StrAppend(&out, "    s", index++, " [label=", Quoted(label), ", fillcolor=\"", colour,
                    "\"];\n");
  }
  return out + "  }\n";
}

}  // namespace

std::string ManifestDot(const Manifest& manifest, const ManifestGraph& graph) {
  std::map<std::string, std::string> colours;  // by object
  for (const ManifestPointer& pointer : graph.pointers) {
    if (IsDeclared(pointer.kind)) colours.emplace(pointer.object, "");
  }
  std::size_t index = 0;
  for (auto& [name, colour] : colours) colour = Colour(index++);

  std::vector<std::set<std::string>> fills(graph.nodes());
  for (const ManifestPointer& pointer : graph.pointers) {
    fills[pointer.node].insert(IsDeclared(pointer.kind) ? colours.at(pointer.object) : kNobodys);
  }
  std::string out = absl::StrCat("digraph ", Quoted(graph.name),
                                 " {\n  node [shape=box, style=filled, fillcolor=white];\n");
  for (std::size_t n = 0; n < graph.nodes(); ++n) {
    absl::StrAppend(&out, "  n", n, " [label=", Quoted(graph.NodeLabel(n)));
    if (!fills[n].empty()) {
      absl::StrAppend(&out, ", fillcolor=\"", absl::StrJoin(fills[n], ":"), "\"");
    }
    absl::StrAppend(&out, fills[n].size() > 1 ? ", style=striped];\n" : "];\n");
  }
  for (const auto& [from, to] : graph.edges) {
    absl::StrAppend(&out, "  n", from, " -> n", to, ";\n");
  }
  return absl::StrCat(out, Legend(manifest, colours), "}\n");
}

}  // namespace holdfast
