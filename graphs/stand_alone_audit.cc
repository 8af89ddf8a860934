#include "graphs/stand_alone_audit.h"

#include <algorithm>
#include <utility>

#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<StandAloneAudit>> StandAloneAudit::Create(Device& device) {
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device.CreateStream("audit"));
  return std::unique_ptr<StandAloneAudit>(new StandAloneAudit(device, std::move(stream)));
}

absl::StatusOr<std::unique_ptr<StandAloneAudit>> StandAloneAudit::Create(
    const std::string& device) {
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<Device> opened, OpenDevice(device));
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<StandAloneAudit> audit, Create(*opened));
  audit->owned_ = std::move(opened);
  return audit;
}

absl::Status StandAloneAudit::AddRange(ExternalRange range) {
  const auto invalid = [&](const std::string& why) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = range.name}, why);
  };
  if (range.name.empty()) return invalid("a range needs a name");
  if (!range.range.base || range.range.bytes == 0) return invalid("null address or zero bytes");
  HOLDFAST_RETURN_IF_ERROR(
      CheckedAdd(range.range.base.value, range.range.bytes, range.name).status());
  if (range.contains_pointers && range.range.base.value % 8 != 0) {
    return invalid("memory that contains pointers begins at a multiple of 8");
  }
  if (std::any_of(ranges_.begin(), ranges_.end(),
                  [&](const ExternalRange& other) { return other.name == range.name; })) {
    return MakeError({.kind = ErrorKind::kAlreadyExists, .object = range.name},
                     "a range of this name exists");
  }
  ranges_.push_back(std::move(range));
  return absl::OkStatus();
}

void StandAloneAudit::AllowNode(const std::string& name) {
  if (name == NodeKindName(NodeKind::kHost)) policy_.allow_host_nodes = true;
  policy_.allowed_nodes.insert(name);
}

absl::StatusOr<AuditReport> StandAloneAudit::Graph(const std::string& name, void* graph) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<CapturedGraph> adopted,
                            device_.AdoptGraph(graph));
  const absl::StatusOr<GraphView> view = adopted->View();
  if (!view.ok()) return Annotate(view.status(), name);
  AuditReport report = Audit(*view, device_, nullptr, ranges_, policy_);
  graphs_.insert_or_assign(name, MakeManifest(name, *view, report, nullptr));
  return report;
}

absl::StatusOr<DeepScanReport> StandAloneAudit::Scan() {
  return DeepScan(device_, *stream_, nullptr, ranges_);
}

Manifest StandAloneAudit::manifest() const {
  std::vector<const GraphManifest*> graphs;
  for (const auto& [name, graph] : graphs_) graphs.push_back(&graph);
  return Describe(nullptr, graphs);
}

absl::StatusOr<std::string> StandAloneAudit::Dot(const std::string& graph) const {
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) {
    return MakeError({.kind = ErrorKind::kNotFound, .object = graph}, "no such graph was audited");
  }
  return ManifestDot({}, Describe(found->second));
}

}  // namespace holdfast
