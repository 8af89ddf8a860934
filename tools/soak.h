// `holdfast soak`: thousands of mixed sleep-wake cycles under a whole engine, with failures at
// random calls and a scribbling neighbour, and after each of them everything as before.
#ifndef HOLDFAST_TOOLS_SOAK_H_
#define HOLDFAST_TOOLS_SOAK_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "device/bytes.h"
#include "tools/run_options.h"

namespace holdfast {

struct SoakOptions {
  std::string model;  // folder with config.json and safetensors
  std::int32_t cycles = 200;
  std::uint64_t seed = 1;
  Injection inject = Injection::kNone;
  std::string device = "auto";
  // Small, so that every group has several chunks.
  std::uint64_t chunk_bytes = 2 * kMiB;
  std::uint64_t host_capacity_bytes = kGiB;  // of the host device
  bool scribble = true;
  std::string json;  // file; empty: none
};

// The most that host memory may grow after the first cycles.
#if defined(__SANITIZE_ADDRESS__)
// What was freed stays with the sanitizer for a while (its quarantine).
inline constexpr std::int64_t kSoakHostGrowth = std::int64_t{1} << 30;
#else
inline constexpr std::int64_t kSoakHostGrowth = 16 * static_cast<std::int64_t>(kMiB);
#endif

struct SoakReport {
  SoakOptions options;
  std::string version, device, driver;
  std::int32_t cycles = 0;                      // that held
  std::map<std::string, std::uint64_t> counts;  // "sleeps", "failed wakes", "rewrites", ...
  std::int64_t host_growth_bytes = 0;           // the most that was seen, the pool trimmed
  std::int64_t unexplained_bytes = 0;           // the most that the ledger could not name
  double seconds = 0;
  std::string failure;  // "cycle N: reason: what"; empty: PASS
  bool passed() const { return failure.empty(); }
};

// An error is bad input or a start that failed: nothing was proved.
absl::StatusOr<SoakReport> Soak(const SoakOptions& options);

std::string SoakText(const SoakReport& report);
std::string SoakJson(const SoakReport& report);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_SOAK_H_
