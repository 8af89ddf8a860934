// `holdfast bench audit`: what reading and auditing a captured graph costs on the host's processor.
#ifndef HOLDFAST_TOOLS_BENCH_AUDIT_H_
#define HOLDFAST_TOOLS_BENCH_AUDIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast {

struct BenchAuditOptions {
  std::string device = "auto";
  std::int32_t nodes = 1000;
  std::int32_t repeats = 21;
  std::string json;  // write the result to this file; empty: none
};

// Medians, in milliseconds for each 1000 nodes.
struct AuditCost {
  std::string graph;        // "plain", "gemm", "wide"
  std::uint64_t nodes = 0;  // as captured: a product may be several nodes
  std::uint64_t words = 0;
  std::uint64_t pointers = 0;
  double read_ms = 0;   // CapturedGraph::View; 0 for a graph made by hand
  double audit_ms = 0;  // Audit
  double limit_ms = 0;  // for both together
  double total_ms() const { return read_ms + audit_ms; }
};

struct BenchAuditReport {
  std::string device, driver;
  std::vector<AuditCost> costs;
  bool within_limits() const;
};

// "plain": kernels with three pointers and a count. "gemm": the device's matrix products. "wide":
// nodes with one parameter of 1720 bytes, as cuBLASLt's are on a Hopper GPU, written by hand, so
// that a machine without a GPU measures them too. kInvalidArgument names the flag.
absl::StatusOr<BenchAuditReport> BenchAudit(const BenchAuditOptions& options);

std::string BenchAuditText(const BenchAuditReport& report);
std::string BenchAuditJson(const BenchAuditReport& report);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_BENCH_AUDIT_H_
