#include "graphs/compare.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graphs/node_words.h"
#include "graphs/thread_stack.h"

namespace holdfast {
namespace {

using Edge = std::pair<std::size_t, std::size_t>;

// Collects the differences of two graphs' nodes.
class Differ {
 public:
  std::vector<std::string> Run(const GraphView& a, const GraphView& b) {
    if (a.nodes.size() != b.nodes.size()) {
      lines_.push_back(absl::StrCat("nodes: ", a.nodes.size(), ", then ", b.nodes.size()));
    }
    const std::size_t nodes = std::min(a.nodes.size(), b.nodes.size());
    for (index_ = 0; index_ < nodes; ++index_) {
      node_ = &a.nodes[index_];
      Node(a.nodes[index_], b.nodes[index_]);
    }
    if (a.edges != b.edges) Edges(a, b);
    return std::move(lines_);
  }

 private:
  void Node(const NodeView& a, const NodeView& b) {
    if (a.kind != b.kind || a.name != b.name) {
      return Line(
          absl::StrCat("then ", NodeLabel(index_, b)));  // their words have no common meaning
    }
    if (a.parameters.size() != b.parameters.size()) {
      Line(absl::StrCat("parameters: ", a.parameters.size(), ", then ", b.parameters.size()));
    }
    const std::size_t parameters = std::min(a.parameters.size(), b.parameters.size());
    for (std::size_t p = 0; p < parameters; ++p) Parameter(p, a.parameters[p], b.parameters[p]);
    if (a.scope != b.scope) Line(absl::StrCat("then in '", b.scope, "'"));
    Number(PlaceLabel(WordPlace::kPolicyWindow, 0, 0), a.policy_window.base.value,
           b.policy_window.base.value);
    Number("access policy bytes", a.policy_window.bytes, b.policy_window.bytes);
    Number(PlaceLabel(WordPlace::kCopySource, 0, 0), a.copy.source, b.copy.source);
    Number(PlaceLabel(WordPlace::kCopyDestination, 0, 0), a.copy.destination, b.copy.destination);
    Number("copy bytes", a.copy.bytes, b.copy.bytes);
    Number("copy source extent", a.copy.source_extent, b.copy.source_extent);
    Number("copy destination extent", a.copy.destination_extent, b.copy.destination_extent);
    if (a.copy.source_side != b.copy.source_side) Line("copy source: another kind of memory");
    if (a.copy.destination_side != b.copy.destination_side) {
      Line("copy destination: another kind of memory");
    }
    Number(PlaceLabel(WordPlace::kFillDestination, 0, 0), a.fill.destination, b.fill.destination);
    Number("fill bytes", a.fill.bytes, b.fill.bytes);
    Number("fill value", a.fill.value, b.fill.value);
    Number("memory operations", a.operations.size(), b.operations.size());
    for (std::size_t i = 0; i < std::min(a.operations.size(), b.operations.size()); ++i) {
      const std::string where = PlaceLabel(WordPlace::kOperation, i, 0);
      Number(where, a.operations[i].address, b.operations[i].address);
      Number(where + " bytes", a.operations[i].bytes, b.operations[i].bytes);
      Number(where + " write", a.operations[i].write, b.operations[i].write);
    }
  }

  void Parameter(std::size_t p, const ParameterView& a, const ParameterView& b) {
    if (a.offset != b.offset || a.bytes.size() != b.bytes.size()) {
      return Line(absl::StrCat("parameter ", p, ": ", a.bytes.size(), " bytes at ", a.offset,
                               ", then ", b.bytes.size(), " at ", b.offset));
    }
    // In the words of the audit, with what lies before the first and after the last as shorter
    // words.
    const std::size_t size = a.bytes.size();
    for (std::size_t byte = 0, end = 0; byte < size; byte = end) {
      end = std::min(size, byte + kWordBytes - (a.offset + byte) % kWordBytes);
      std::uint64_t x = 0, y = 0;
      std::memcpy(&x, a.bytes.data() + byte, end - byte);
      std::memcpy(&y, b.bytes.data() + byte, end - byte);
      if (x != y && !(stack_.Contains({x}) && stack_.Contains({y})))
        Number(ParameterLabel(p, byte), x, y);
    }
  }

  void Edges(const GraphView& a, const GraphView& b) {
    const std::set<Edge> first(a.edges.begin(), a.edges.end());
    const std::set<Edge> second(b.edges.begin(), b.edges.end());
    OnlyIn(first, second, "gone");
    OnlyIn(second, first, "new");
  }

  void OnlyIn(const std::set<Edge>& these, const std::set<Edge>& those, const char* what) {
    for (const Edge& edge : these) {
      if (those.count(edge) > 0) continue;
      lines_.push_back(absl::StrCat("edge ", edge.first, " -> ", edge.second, " is ", what));
    }
  }

  void Number(const std::string& where, std::uint64_t a, std::uint64_t b) {
    if (a != b) Line(absl::StrCat(where, ": ", HexWord(a), ", then ", HexWord(b)));
  }

  void Line(const std::string& what) {
    lines_.push_back(absl::StrCat(NodeLabel(index_, *node_), ": ", what));
  }

  const AddressRange stack_ = ThisThreadsStack();
  std::vector<std::string> lines_;
  std::size_t index_ = 0;
  const NodeView* node_ = nullptr;
};

}  // namespace

std::vector<std::string> DiffGraphs(const GraphView& a, const GraphView& b) {
  return Differ().Run(a, b);
}

}  // namespace holdfast
