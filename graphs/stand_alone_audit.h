// An audit of graphs that others made, against ranges the caller names: no arena, no adoption.
//
//   auto audit = StandAloneAudit::Create("cuda:0");
//   (*audit)->AddRange({.name = "weights", .range = {{base}, bytes}, .sealed = true});
//   auto report = (*audit)->Graph("decode", cu_graph);   // *report: AuditReport
#ifndef HOLDFAST_GRAPHS_STAND_ALONE_AUDIT_H_
#define HOLDFAST_GRAPHS_STAND_ALONE_AUDIT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"
#include "graphs/audit.h"
#include "graphs/deep_scan.h"
#include "graphs/manifest.h"

namespace holdfast {

// Not thread-safe.
class StandAloneAudit {
 public:
  // Opens the device: errors as OpenDevice.
  static absl::StatusOr<std::unique_ptr<StandAloneAudit>> Create(const std::string& device);
  // On a device that is open already and outlives it. (Host devices do not know each other's
  // memory: what another one holds is found only where it is declared.)
  static absl::StatusOr<std::unique_ptr<StandAloneAudit>> Create(Device& device);

  Device& device() { return device_; }
  // kInvalidArgument: no name, no address, no bytes, or beyond 64 bits; kAlreadyExists.
  absl::Status AddRange(ExternalRange range);
  void AllowNode(const std::string& name);

  // Audits a graph as Device::AdoptGraph takes it. What was found is in the report: an error is a
  // graph that could not be read at all. Kept for the manifest under its name.
  absl::StatusOr<AuditReport> Graph(const std::string& name, void* graph);
  // Tier 3 over the ranges that contain pointers.
  absl::StatusOr<DeepScanReport> Scan();

  // Of every graph audited so far.
  Manifest manifest() const;
  // For Graphviz; kNotFound if no graph of that name was audited.
  absl::StatusOr<std::string> Dot(const std::string& graph) const;

 private:
  StandAloneAudit(Device& device, std::unique_ptr<Stream> stream)
      : device_(device), stream_(std::move(stream)) {}

  std::unique_ptr<Device> owned_;  // null if somebody else's
  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::vector<ExternalRange> ranges_;
  AuditPolicy policy_;
  std::map<std::string, GraphManifest> graphs_;
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_STAND_ALONE_AUDIT_H_
