#include "graphs/audit.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device/error.h"
#include "graphs/node_words.h"
#include "graphs/pointer_classifier.h"

namespace holdfast {

const char* PointerClassName(PointerClass c) {
  switch (c) {
    case PointerClass::kSpan: return "span";
    case PointerClass::kHostSpan: return "host span";
    case PointerClass::kExternal: return "external";
    case PointerClass::kForeign: return "foreign";
    case PointerClass::kUnmapped: return "unmapped";
    case PointerClass::kHost: return "host";
    case PointerClass::kNotPointer: return "not a pointer";
  }
  return "unknown";
}

std::map<PointerClass, std::uint64_t> AuditReport::count_by_class() const {
  std::map<PointerClass, std::uint64_t> counts;
  for (const PointerFinding& pointer : pointers) ++counts[pointer.kind];
  return counts;
}

std::set<std::string> AuditReport::spans() const {
  std::set<std::string> names;
  for (const PointerFinding& pointer : pointers) {
    if (pointer.kind == PointerClass::kSpan) names.insert(pointer.object);
  }
  return names;
}

absl::Status AuditReport::Verdict(const std::string& graph_name) const {
  if (problems.empty()) return absl::OkStatus();
  return MakeError(
      {.kind = unauditable_first_ ? ErrorKind::kUnauditable : ErrorKind::kForeignPointer,
       .object = graph_name},
      absl::StrCat("the audit found ", problems.size(),
                   " problem(s): ", absl::StrJoin(problems, "; ")));
}

// One audit under way: walks the nodes, fills the report.
class Auditor {
 public:
  Auditor(const Device& device, const Arena* arena, const std::vector<ExternalRange>& externals,
          const AuditPolicy& policy)
      : device_(device), policy_(policy), classifier_(device, arena, externals) {}

  AuditReport Run(const GraphView& view) {
    report_.nodes = view.nodes.size();
    report_.pointers.reserve(4 * view.nodes.size());  // what a node of a transformer step has
    for (node_ = 0; node_ < view.nodes.size(); ++node_) Node(view.nodes[node_]);
    return std::move(report_);
  }

 private:
  void Node(const NodeView& node) {
    switch (node.kind) {
      case NodeKind::kKernel: return Kernel(node);
      case NodeKind::kCopy:
        Range(node, kCopySource, node.copy.source, node.copy.bytes, node.copy.source_side, false);
        return Range(node, kCopyDestination, node.copy.destination, node.copy.bytes,
                     node.copy.destination_side, true);
      case NodeKind::kFill:
        return Range(node, kFillDestination, node.fill.destination, node.fill.bytes,
                     CopySide::kDevice, true);
      case NodeKind::kEmpty: return;
      case NodeKind::kHost:
        if (policy_.allow_host_nodes) return;
        return Unauditable(node, "a host function's pointers cannot be read");
      case NodeKind::kAllocation:
      case NodeKind::kFree:
        return Unauditable(node, "the graph would own memory outside the arena");
      case NodeKind::kChild:
      case NodeKind::kUnreadable: return Unauditable(node, "its pointers cannot be read");
    }
    Unauditable(node, "of no known kind");
  }

  void Kernel(const NodeView& node) {
    for (std::size_t p = 0; p < node.parameters.size(); ++p) {
      const ParameterView& parameter = node.parameters[p];
      for (std::size_t byte = FirstWord(parameter); byte + kWordBytes <= parameter.bytes.size();
           byte += kWordBytes) {
        ++report_.words;
        const std::uint64_t word = ReadWord(parameter, byte);
        const PointerTarget target = classifier_.Word(word);
        if (target.kind == PointerClass::kNotPointer) continue;
        PointerFinding& finding = Add(ParameterLabel(p, byte), word, target);
        finding.parameter = static_cast<std::uint32_t>(p);
        finding.byte = static_cast<std::uint32_t>(byte);
        RefuseUnknown(node, finding);
      }
    }
  }

  // One side of a copy, or a fill: [address, address + bytes) must lie in one object that may be
  // used so.
  void Range(const NodeView& node, const char* where, std::uint64_t address, std::uint64_t bytes,
             CopySide side, bool write) {
    ++report_.words;
    const PointerTarget target = classifier_.Side(address, side);
    PointerFinding& finding = Add(where, address, target);
    finding.write = write;
    if (RefuseUnknown(node, finding)) return;
    const std::string object =
        absl::StrCat(PointerClassName(target.kind), " '", finding.object, "'");
    if (bytes > target.left) {
      return Problem(node, finding,
                     absl::StrCat(bytes, " bytes at ", object, " + ", target.offset,
                                  " run past its end, ", target.left, " bytes on"));
    }
    if (target.span == nullptr) return;
    const bool immutable = target.span->role == Role::kImmutable;
    if (target.span->asleep) {  // no pages to ask about
      if (write && immutable) Problem(node, finding, absl::StrCat("writes to sealed ", object));
      return;
    }
    const AddressState last = device_.Query({address + bytes - (bytes > 0 ? 1 : 0)});
    if (!device_.Query({address}).mapped || !last.mapped) {
      Problem(node, finding, absl::StrCat("uncommitted pages of ", object, " + ", target.offset));
    } else if (write && immutable && last.access != Access::kReadWrite) {
      Problem(node, finding, absl::StrCat("writes to sealed ", object));
    }
  }

  PointerFinding& Add(std::string where, std::uint64_t word, const PointerTarget& target) {
    PointerFinding& finding = report_.pointers.emplace_back();
    finding.node = node_;
    finding.where = std::move(where);
    finding.word = word;
    finding.kind = target.kind;
    if (target.object != nullptr) finding.object = *target.object;
    finding.offset = target.offset;
    return finding;
  }

  // True if the pointer's class alone is a problem; it is then reported.
  bool RefuseUnknown(const NodeView& node, const PointerFinding& finding) {
    switch (finding.kind) {
      case PointerClass::kForeign:
        Problem(node, finding, "foreign memory that nobody declared");
        return true;
      case PointerClass::kUnmapped:
        Problem(node, finding, "unmapped: in no span, or freed");
        return true;
      case PointerClass::kHost:
        Problem(node, finding, "host memory that is no registered host span");
        return true;
      default: return false;
    }
  }

  void Problem(const NodeView& node, const PointerFinding& finding, const std::string& what) {
    report_.problems.push_back(absl::StrCat(NodeLabel(node_, node), ": ", finding.where, " = ",
                                            HexWord(finding.word), ": ", what));
  }

  void Unauditable(const NodeView& node, const std::string& why) {
    if (policy_.allowed_nodes.count(node.name) > 0) return;
    if (report_.problems.empty()) report_.unauditable_first_ = true;
    report_.problems.push_back(absl::StrCat(NodeLabel(node_, node), ": ", why));
  }

  const Device& device_;
  const AuditPolicy& policy_;
  PointerClassifier classifier_;
  AuditReport report_;
  std::size_t node_ = 0;
};

AuditReport Audit(const GraphView& view, const Device& device, const Arena* arena,
                  const std::vector<ExternalRange>& externals, const AuditPolicy& policy) {
  return Auditor(device, arena, externals, policy).Run(view);
}

}  // namespace holdfast
