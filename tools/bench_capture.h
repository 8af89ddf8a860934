// `holdfast bench capture`: what capturing every bucket of a layered step costs, in time and
// memory.
#ifndef HOLDFAST_TOOLS_BENCH_CAPTURE_H_
#define HOLDFAST_TOOLS_BENCH_CAPTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graphs/executable_memory.h"
#include "graphs/graph.h"

namespace holdfast {

struct BenchCaptureOptions {
  std::string device = "auto";
  int layers = 32;
  int width = 256;    // of a row
  int largest = 512;  // rows of the largest bucket; the default rule gives 51 buckets
  std::string json;   // write the result to this file; empty: none
};

struct CaptureRow {
  std::string graph;
  std::uint64_t nodes = 0;
  CaptureTimes times;
  ExecutableMemory executable;
};

struct BenchCaptureReport {
  BenchCaptureOptions options;
  std::string device, driver, date;
  double measure_seconds = 0, warm_up_seconds = 0, capture_seconds = 0;  // of all buckets
  std::vector<CaptureRow> rows;                                          // by size
  std::uint64_t scratch_bytes = 0;      // what the lane takes: the largest bucket's
  std::uint64_t scratch_sum_bytes = 0;  // what buckets without sharing would take
  double plan_ratio = 1;                // worst height over lower bound
  CaptureTimes times() const;           // sums
  ExecutableMemory executable() const;
};

// kInvalidArgument names the flag.
absl::StatusOr<BenchCaptureReport> BenchCapture(const BenchCaptureOptions& options);

std::string BenchCaptureText(const BenchCaptureReport& report);
std::string BenchCaptureJson(const BenchCaptureReport& report);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_BENCH_CAPTURE_H_
