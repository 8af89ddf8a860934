// `holdfast bench sleep`: what sleep and wake of a bare arena cost, tag by tag and stage by stage,
// beside what the link does in the same run.
#ifndef HOLDFAST_TOOLS_BENCH_SLEEP_H_
#define HOLDFAST_TOOLS_BENCH_SLEEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/residency.h"
#include "tools/bench_arena.h"
#include "tools/plain_copy.h"

namespace holdfast {

// Whether the backups' host memory is there before the first sleep.
enum class PoolChoice { kNone, kPrepared, kBackground };
const char* PoolChoiceName(PoolChoice choice);  // "none", ...

struct SleepCase {
  std::string name;
  BenchArenaOptions arena;
  PoolChoice pool = PoolChoice::kNone;
  bool through_pool = false;  // contents are loaded through the pool, and stay there as backups
  bool warm_host = true;      // as much host memory was touched and freed by this process before
  double changed = 0;         // of the kept leaves, rewritten before each sleep but the first
  double pause_seconds = 0;   // asleep
  int cycles = 3;
};

struct TimedTransition {
  double seconds = 0;  // wall clock around the call
  TransitionReport report;
  double StageSeconds(const std::string& stage) const;  // 0 if there was none
};

struct SleepCycle {
  TimedTransition kept_sleep, kept_wake;
  TimedTransition dropped_sleep, dropped_wake;  // nothing if there are no dropped bytes
};

struct SleepResult {
  SleepCase asked;
  std::uint64_t kept_bytes = 0;         // logical
  std::uint64_t mapped_kept_bytes = 0;  // pages behind them
  std::uint64_t backing_bytes = 0;      // host memory that holds them
  double prepare_seconds = 0;           // spent before the first sleep, when prepared
  std::vector<SleepCycle> cycles;
  PlainCopy plain;
  // With everything asleep: device memory of ours, and what the driver counts for the process
  // above what it counted before the arena was made.
  std::uint64_t own_bytes_asleep = 0;
  std::int64_t process_growth_bytes = 0;

  double first_sleep() const { return cycles.front().kept_sleep.seconds; }
  double later_sleep() const;  // median of the others; 0 if there was one cycle
  double wake() const;         // median
  double dropped_sleep() const;
  double dropped_wake() const;       // without the fill
  double dropped_wake_fill() const;  // the fill alone
};

// Device memory that a case takes at most; host devices are opened with it.
std::uint64_t DeviceBytesOf(const SleepCase& c);

// Runs one case. Contents are compared by hash in every cycle: kCorrupted if they changed, for then
// no figure means anything. kInvalidArgument names the flag.
absl::StatusOr<SleepResult> RunSleepCase(Device& device, const SleepCase& c);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_BENCH_SLEEP_H_
