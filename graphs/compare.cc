#include "graphs/compare.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graphs/node_words.h"

namespace holdfast {
namespace {

using Edge = std::pair<std::size_t, std::size_t>;

// Where this thread's stack lies; empty if the system does not say.
AddressRange ThisThreadsStack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* low = nullptr;
  std::size_t bytes = 0;
  const int failed = pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  if (failed != 0) return {};
  return {{reinterpret_cast<std::uint64_t>(low)}, bytes};
}

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
    Number(kCopySource, a.copy.source, b.copy.source);
    Number(kCopyDestination, a.copy.destination, b.copy.destination);
    Number("copy bytes", a.copy.bytes, b.copy.bytes);
    if (a.copy.source_side != b.copy.source_side) Line("copy source: another kind of memory");
    if (a.copy.destination_side != b.copy.destination_side) {
      Line("copy destination: another kind of memory");
    }
    Number(kFillDestination, a.fill.destination, b.fill.destination);
    Number("fill bytes", a.fill.bytes, b.fill.bytes);
    Number("fill value", a.fill.value, b.fill.value);
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

// The word a finding is about, inside `node`.
std::uint64_t LoadWord(const NodeView& node, const PointerFinding& finding) {
  if (node.kind == NodeKind::kKernel)
    return ReadWord(node.parameters[finding.parameter], finding.byte);
  if (node.kind == NodeKind::kFill) return node.fill.destination;
  return finding.where == kCopySource ? node.copy.source : node.copy.destination;
}

void StoreWord(NodeView& node, const PointerFinding& finding, std::uint64_t word) {
  if (node.kind == NodeKind::kKernel) {
    std::memcpy(node.parameters[finding.parameter].bytes.data() + finding.byte, &word,
                sizeof(word));
  } else if (node.kind == NodeKind::kFill) {
    node.fill.destination = word;
  } else {
    (finding.where == kCopySource ? node.copy.source : node.copy.destination) = word;
  }
}

bool SameLayout(const NodeView& a, const NodeView& b) {
  return a.kind == b.kind && a.name == b.name &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                    b.parameters.end(), [](const ParameterView& x, const ParameterView& y) {
                      return x.offset == y.offset && x.bytes.size() == y.bytes.size();
                    });
}

}  // namespace

std::vector<std::string> DiffGraphs(const GraphView& a, const GraphView& b) {
  return Differ().Run(a, b);
}

std::vector<std::string> DiffShifted(const GraphView& base, const AuditReport& audit,
                                     const GraphView& shifted, std::uint64_t shift) {
  std::vector<std::string> lines;
  // Judge the span pointers here; then move them back, so that all the rest must be equal.
  GraphView rest = shifted;
  for (const PointerFinding& pointer : audit.pointers) {
    if (pointer.kind != PointerClass::kSpan || pointer.node >= shifted.nodes.size()) continue;
    NodeView& node = rest.nodes[pointer.node];
    if (!SameLayout(base.nodes[pointer.node], node))
      continue;  // reported as a different node below
    const std::uint64_t word = LoadWord(node, pointer);
    if (word != pointer.word + shift) {
      lines.push_back(absl::StrCat(NodeLabel(pointer.node, node), ": ", pointer.where,
                                   ": pointer to span '", pointer.object, "' + ", pointer.offset,
                                   " did not move by the shift: ", HexWord(pointer.word), ", then ",
                                   HexWord(word)));
    }
    StoreWord(node, pointer, pointer.word);
  }
  std::vector<std::string> others = DiffGraphs(base, rest);
  lines.insert(lines.end(), others.begin(), others.end());
  return lines;
}

}  // namespace holdfast
