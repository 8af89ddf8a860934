// `holdfast bench replay`: what a guarded replay costs the host beyond the driver's own launch
// call.
#ifndef HOLDFAST_TOOLS_BENCH_REPLAY_H_
#define HOLDFAST_TOOLS_BENCH_REPLAY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast {

struct BenchReplayOptions {
  std::string device = "auto";
  std::int64_t launches = 100'000;  // of each kind, for each graph
  std::vector<int> nodes = {1, 100, 1000};
  std::string torch;  // JSON that tools/torch_replay.py wrote; empty: none
  std::string json;   // write the result to this file; empty: none
};

// Microseconds of the calling thread.
struct CallTimes {
  double p50 = 0, p99 = 0;
};

struct ReplayRow {
  int nodes = 0;
  CallTimes bare;                  // the driver's call alone
  CallTimes replay;                // Graph::Replay
  std::optional<CallTimes> torch;  // torch.cuda.CUDAGraph.replay(), from another process
  double overhead_p50() const { return replay.p50 - bare.p50; }
  double overhead_p99() const { return replay.p99 - bare.p99; }
};

struct BenchReplayReport {
  BenchReplayOptions options;
  std::string device, driver, date, torch_version;
  bool is_cuda = false;
  std::vector<ReplayRow> rows;
  // On a GPU: at most 0.1 us at p50 and 0.3 us at p99, for every graph. Always true on the host.
  bool within_goals() const;
};

inline constexpr double kReplayGoalP50 = 0.1, kReplayGoalP99 = 0.3;  // microseconds

// Both calls are timed in turn on the same graph and stream, in alternating order. kInvalidArgument
// names the flag, kCorrupted the file.
absl::StatusOr<BenchReplayReport> BenchReplay(const BenchReplayOptions& options);

std::string BenchReplayText(const BenchReplayReport& report);
std::string BenchReplayJson(const BenchReplayReport& report);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_BENCH_REPLAY_H_
