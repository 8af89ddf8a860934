#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "graphs/manifest.h"
#include "graphs/node_words.h"

namespace holdfast {
namespace {

using Edge = std::pair<std::size_t, std::size_t>;

std::string Target(const ManifestPointer& pointer) {
  if (pointer.object.empty()) return PointerClassName(pointer.kind);
  return absl::StrCat(PointerClassName(pointer.kind), " '", pointer.object, "' + ", pointer.offset,
                      pointer.write ? ", written" : "");
}

std::string Extent(const ManifestSpan& span) {
  return absl::StrCat(span.tag, "/", span.role, ", ", span.bytes, " bytes at window + ",
                      span.offset);
}

template <typename T>
std::map<std::string, const T*> ByName(const std::vector<T>& all) {
  std::map<std::string, const T*> map;
  for (const T& one : all) map.emplace(one.name, &one);
  return map;
}

class ManifestDiffer {
 public:
  std::vector<std::string> Run(const Manifest& a, const Manifest& b) {
    if (a.window_base != b.window_base) {
      Line(
          absl::StrCat("window: base ", HexWord(a.window_base), ", then ", HexWord(b.window_base)));
    }
    if (a.window_bytes != b.window_bytes) {
      Line(absl::StrCat("window: ", a.window_bytes, " bytes, then ", b.window_bytes));
    }
    Both("span", ByName(a.spans), ByName(b.spans),
         [this](const ManifestSpan& x, const ManifestSpan& y) {
           if (x == y) return;
           Line(absl::StrCat("span '", x.name, "': ", Extent(x), ", then ", Extent(y)));
         });
    Both("graph", ByName(a.graphs), ByName(b.graphs),
         [this](const ManifestGraph& x, const ManifestGraph& y) { Graphs(x, y); });
    return std::move(lines_);
  }

 private:
  // Calls compare(x, y) for what both have, and names what only one has.
  template <typename T, typename Compare>
  void Both(const char* what, const std::map<std::string, const T*>& a,
            const std::map<std::string, const T*>& b, Compare compare) {
    for (const auto& [name, x] : a) {
      const auto found = b.find(name);
      if (found == b.end()) {
        Line(absl::StrCat(what, " '", name, "': gone"));
      } else {
        compare(*x, *found->second);
      }
    }
    for (const auto& [name, y] : b) {
      if (a.count(name) == 0) Line(absl::StrCat(what, " '", name, "': new"));
    }
  }

  void Graphs(const ManifestGraph& a, const ManifestGraph& b) {
    if (a.nodes() != b.nodes()) {
      Line(absl::StrCat(a.name, ": ", a.nodes(), " nodes, then ", b.nodes()));
    }
    for (std::size_t n = 0; n < std::min(a.nodes(), b.nodes()); ++n) {
      if (a.NodeLabel(n) != b.NodeLabel(n)) {
        Line(absl::StrCat(a.name, ": ", a.NodeLabel(n), ", then ", b.NodeLabel(n)));
      }
    }
    Edges(a, b);
    Pointers(a, b);
  }

  void Edges(const ManifestGraph& a, const ManifestGraph& b) {
    std::vector<Edge> first = a.edges, second = b.edges, gone, added;
    std::sort(first.begin(), first.end());
    std::sort(second.begin(), second.end());
    std::set_difference(first.begin(), first.end(), second.begin(), second.end(),
                        std::back_inserter(gone));
    std::set_difference(second.begin(), second.end(), first.begin(), first.end(),
                        std::back_inserter(added));
    for (const Edge& e : gone) {
      Line(absl::StrCat(a.name, ": edge ", e.first, " -> ", e.second, " is gone"));
    }
    for (const Edge& e : added) {
      Line(absl::StrCat(a.name, ": edge ", e.first, " -> ", e.second, " is new"));
    }
  }

  void Pointers(const ManifestGraph& a, const ManifestGraph& b) {
    using Key = std::pair<std::size_t, std::string>;  // node, where
    const auto index = [](const ManifestGraph& graph) {
      std::map<Key, const ManifestPointer*> map;
      for (const ManifestPointer& p : graph.pointers) map.emplace(Key{p.node, p.where}, &p);
      return map;
    };
    const auto first = index(a), second = index(b);
    for (const auto& [key, x] : first) {
      const auto found = second.find(key);
      if (found != second.end() && *found->second == *x) continue;
      Line(absl::StrCat(a.name, ": ", a.NodeLabel(key.first), ": ", key.second, ": ", Target(*x),
                        ", then ", found == second.end() ? "no pointer" : Target(*found->second)));
    }
    for (const auto& [key, y] : second) {
      if (first.count(key) > 0) continue;
      Line(absl::StrCat(a.name, ": ", b.NodeLabel(key.first), ": ", key.second,
                        ": no pointer, then ", Target(*y)));
    }
  }

  void Line(std::string line) { lines_.push_back(std::move(line)); }

  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> DiffManifests(const Manifest& a, const Manifest& b) {
  return ManifestDiffer().Run(a, b);
}

}  // namespace holdfast
