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

const std::string& AuditReport::ObjectOf(const PointerFinding& pointer) const {
  static const std::string& none = *new std::string;
  return pointer.object < objects.size() ? objects[pointer.object] : none;
}

std::map<PointerClass, std::uint64_t> AuditReport::count_by_class() const {
  std::map<PointerClass, std::uint64_t> counts;
  for (const PointerFinding& pointer : pointers) ++counts[pointer.kind];
  return counts;
}

std::set<std::string> AuditReport::objects_of(PointerClass kind) const {
  std::vector<bool> met(objects.size());
  std::set<std::string> names;
  for (const PointerFinding& pointer : pointers) {
    if (pointer.kind != kind || pointer.object >= objects.size() || met[pointer.object]) continue;
    met[pointer.object] = true;
    names.insert(objects[pointer.object]);
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
      : policy_(policy), classifier_(device, arena, externals) {}

  AuditReport Run(const GraphView& view) {
    report_.nodes = view.nodes.size();
    report_.pointers.reserve(4 * view.nodes.size());  // what a node of a transformer step has
    for (node_ = 0; node_ < view.nodes.size(); ++node_) Node(view.nodes[node_]);
    report_.objects = classifier_.TakeNames();
    return std::move(report_);
  }

 private:
  void Node(const NodeView& node) {
    switch (node.kind) {
      case NodeKind::kKernel: return Kernel(node);
      case NodeKind::kCopy:
        Range(node, WordPlace::kCopySource, 0, {{node.copy.source}, node.copy.source_reach()},
              node.copy.source_side, /*write=*/false);
        return Range(node, WordPlace::kCopyDestination, 0,
                     {{node.copy.destination}, node.copy.destination_reach()},
                     node.copy.destination_side, /*write=*/true);
      case NodeKind::kFill:
        return Range(node, WordPlace::kFillDestination, 0,
                     {{node.fill.destination}, node.fill.bytes}, CopySide::kDevice, /*write=*/true);
      case NodeKind::kMemoryOperation:
        for (std::size_t i = 0; i < node.operations.size(); ++i) {
          const MemoryOperationView& operation = node.operations[i];
          Range(node, WordPlace::kOperation, i, {{operation.address}, operation.bytes},
                CopySide::kUnified, operation.write);
        }
        return;
      case NodeKind::kEmpty:
      case NodeKind::kEvent:
      case NodeKind::kConditional: return;
      case NodeKind::kHost:
        if (policy_.allow_host_nodes) return;
        return Unauditable(node, "a host function's pointers cannot be read");
      case NodeKind::kSemaphore:
        return Unauditable(node, "another API's semaphore may refer to its memory");
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
      if (!CanHoldPointer(parameter)) continue;
      const std::size_t last = parameter.bytes.size() - kWordBytes;
      report_.words += last / kWordBytes + 1;
      for (std::size_t byte = 0; byte <= last; byte += kWordBytes) {
        const std::uint64_t word = ReadWord(parameter, byte);
        const PointerTarget target = classifier_.Word(word);
        if (target.kind == PointerClass::kNotPointer) continue;
        RefuseUnknown(node, Add(WordPlace::kParameter, p, byte, word, target), target);
      }
    }
    // Only a hint to the cache: it may reach past the object, but not lie in nobody's memory.
    if (node.policy_window.bytes == 0) return;
    ++report_.words;
    const std::uint64_t base = node.policy_window.base.value;
    const PointerTarget target = classifier_.Side(base, CopySide::kDevice);
    RefuseUnknown(node, Add(WordPlace::kPolicyWindow, 0, 0, base, target), target);
  }

  // One side of a copy, a fill, a memory operation: the range must lie in one object that may be
  // used so.
  void Range(const NodeView& node, WordPlace place, std::size_t index, AddressRange range,
             CopySide side, bool write) {
    ++report_.words;
    if (write) ++report_.writes;
    const PointerTarget target = classifier_.Side(range.base.value, side);
    PointerFinding& finding = Add(place, index, 0, range.base.value, target);
    finding.write = write;
    if (RefuseUnknown(node, finding, target)) return;
    if (target.object == PointerFinding::kNoObject) return;
    const PointedObject& object = classifier_.object(target.object);
    const auto named = [&] {
      return absl::StrCat(PointerClassName(target.kind), " '", classifier_.name(target.object),
                          "'");
    };
    const std::uint64_t left = object.bytes - target.offset;
    if (range.bytes > left) {
      return Problem(node, finding,
                     absl::StrCat(range.bytes, " bytes at ", named(), " + ", target.offset,
                                  " run past its end, ", left, " bytes on"));
    }
    const bool has_pages = target.kind != PointerClass::kSpan || object.asleep ||
                           target.offset + range.bytes <= object.committed_bytes;
    if (!has_pages) {
      return Problem(node, finding,
                     absl::StrCat("uncommitted pages of ", named(), " + ", target.offset));
    }
    if (!write || !object.sealed) return;
    ++report_.writes_to_sealed;
    Problem(node, finding, absl::StrCat("writes to sealed ", named()));
  }

  PointerFinding& Add(WordPlace place, std::size_t index, std::size_t byte, std::uint64_t word,
                      const PointerTarget& target) {
    return report_.pointers.emplace_back(PointerFinding{.node = static_cast<std::uint32_t>(node_),
                                                        .place = place,
                                                        .kind = target.kind,
                                                        .index = static_cast<std::uint32_t>(index),
                                                        .byte = static_cast<std::uint32_t>(byte),
                                                        .object = target.object,
                                                        .word = word,
                                                        .offset = target.offset});
  }

  // True if the pointer's class alone is a problem; it is then reported.
  bool RefuseUnknown(const NodeView& node, const PointerFinding& finding,
                     const PointerTarget& target) {
    switch (finding.kind) {
      case PointerClass::kForeign:
        Problem(node, finding, "foreign memory that nobody declared");
        return true;
      case PointerClass::kUnmapped: Problem(node, finding, WhyUnmapped(target)); return true;
      case PointerClass::kHost:
        Problem(node, finding, "host memory that is no registered host span");
        return true;
      default: return false;
    }
  }

  std::string WhyUnmapped(const PointerTarget& target) const {
    if (target.object != PointerFinding::kNoObject) {
      return absl::StrCat("freed: '", classifier_.name(target.object), "' + ", target.offset,
                          " is not in use any more");
    }
    return target.freed ? "freed: unmapped, and given back by this device"
                        : "unmapped: in no span, or freed";
  }

  void Problem(const NodeView& node, const PointerFinding& finding, const std::string& what) {
    report_.problems.push_back(absl::StrCat(NodeLabel(node_, node), ": ", finding.where(), " = ",
                                            HexWord(finding.word), ": ", what));
  }

  void Unauditable(const NodeView& node, const std::string& why) {
    if (policy_.allowed_nodes.count(node.name) > 0) return;
    if (report_.problems.empty()) report_.unauditable_first_ = true;
    report_.problems.push_back(absl::StrCat(NodeLabel(node_, node), ": ", why));
  }

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
