#include "tools/bench_sleep.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/host_limits.h"
#include "tools/progress.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kDeadline{60};
constexpr int kTouchers = 8;
constexpr std::uint64_t kPageBytes = 4096;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

absl::Status BadFlag(const std::string& flag, const std::string& why) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = flag}, why);
}

// Several times what a first sleep needs: the system hands out other pages than were freed last.
constexpr std::uint64_t kWarmTimes = 4;

// Host memory that this process has touched. Freed right before it is needed: a virtual machine may
// give free pages back to its host within seconds, and they are cold again.
class WarmHostMemory {
 public:
  static absl::StatusOr<WarmHostMemory> Touch(std::uint64_t needed) {
    WarmHostMemory warm;
    const std::uint64_t bytes =
        std::min(kWarmTimes * needed, ReadHostLimits("/").available_bytes() / 2);
    warm.memory_.reset(new (std::nothrow) char[bytes]);
    if (warm.memory_ == nullptr) {
      return MakeError(
          {.kind = ErrorKind::kOutOfHostMemory, .object = "--host-memory", .need = bytes},
          "cannot be warmed");
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < kTouchers; ++t) {
      threads.emplace_back([memory = warm.memory_.get(), bytes, t] {
        volatile char* const page = memory;
        for (std::uint64_t at = t * kPageBytes; at < bytes; at += kTouchers * kPageBytes)
          page[at] = 1;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return warm;
  }

 private:
  std::unique_ptr<char[]> memory_;
};

absl::StatusOr<TimedTransition> TimeSleep(BenchArena& bench, const std::string& tag) {
  const Clock::time_point start = Clock::now();
  HOLDFAST_ASSIGN_OR_RETURN(TransitionReport report,
                            bench.residency().Sleep({tag}, start + kDeadline));
  return TimedTransition{SecondsSince(start), std::move(report)};
}

absl::StatusOr<TimedTransition> TimeWake(BenchArena& bench, const std::string& tag) {
  const Clock::time_point start = Clock::now();
  HOLDFAST_ASSIGN_OR_RETURN(TransitionReport report, bench.residency().Wake({tag}));
  return TimedTransition{SecondsSince(start), std::move(report)};
}

absl::Status CheckCase(const SleepCase& c) {
  if (c.cycles < 1) return BadFlag("--cycles", "must be at least 1");
  if (!(c.changed >= 0 && c.changed <= 1)) return BadFlag("--changed", "must be from 0 to 1");
  if (!(c.pause_seconds >= 0 && c.pause_seconds <= 3600)) {
    return BadFlag("--pause", "must be from 0 to 3600 seconds");
  }
  return absl::OkStatus();
}

// Runs one cycle and proves that the kept contents came back.
absl::StatusOr<SleepCycle> RunCycle(Device& device, BenchArena& bench, const SleepCase& c,
                                    SleepResult& result) {
  const bool drops = c.arena.dropped_bytes > 0;
  HOLDFAST_ASSIGN_OR_RETURN(const Hash128 before, bench.HashContents());
  SleepCycle cycle;
  HOLDFAST_ASSIGN_OR_RETURN(cycle.kept_sleep, TimeSleep(bench, kBenchKept));
  if (drops) {
    HOLDFAST_ASSIGN_OR_RETURN(cycle.dropped_sleep, TimeSleep(bench, kBenchDropped));
  }
  HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse asleep, device.Memory());
  result.own_bytes_asleep = asleep.own_bytes;
  result.process_growth_bytes = static_cast<std::int64_t>(asleep.process_bytes);
  result.backing_bytes = bench.residency().backing_bytes();
  std::this_thread::sleep_for(std::chrono::duration<double>(c.pause_seconds));
  if (drops) {
    HOLDFAST_ASSIGN_OR_RETURN(cycle.dropped_wake, TimeWake(bench, kBenchDropped));
  }
  HOLDFAST_ASSIGN_OR_RETURN(cycle.kept_wake, TimeWake(bench, kBenchKept));
  HOLDFAST_ASSIGN_OR_RETURN(const Hash128 after, bench.HashContents());
  if (before == after) return cycle;
  return MakeError({.kind = ErrorKind::kCorrupted, .object = c.name},
                   "contents changed in a cycle");
}

}  // namespace

std::uint64_t DeviceBytesOf(const SleepCase& c) {
  // Every chunk may be rounded up, and the plain copy comes when the arena has gone.
  return std::max(
      c.arena.kept_bytes + c.arena.spans * 256 + c.arena.dropped_bytes + 16 * kMiB,
      PlainCopyRoom(c.arena.kept_bytes, std::max<std::uint64_t>(c.arena.chunk_bytes, 2 * kMiB)) +
          16 * kMiB);
}

absl::StatusOr<SleepResult> RunSleepCase(Device& device, const SleepCase& c) {
  HOLDFAST_RETURN_IF_ERROR(CheckCase(c));
  SleepResult result{.asked = c};
  HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse at_start, device.Memory());
  ShowStage(absl::StrCat(c.name, ": making contents"));
  WarmHostMemory warm;
  if (c.warm_host) {
    HOLDFAST_ASSIGN_OR_RETURN(warm, WarmHostMemory::Touch(c.arena.kept_bytes));
  }
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<BenchArena> bench,
                            BenchArena::Create(device, c.arena, c.through_pool));
  result.kept_bytes = bench->kept_bytes();
  result.mapped_kept_bytes = bench->mapped_kept_bytes();
  warm = {};

  const Clock::time_point start = Clock::now();
  if (c.pool == PoolChoice::kPrepared) {
    HOLDFAST_RETURN_IF_ERROR(bench->residency().Prepare({kBenchKept}));
  } else if (c.pool == PoolChoice::kBackground) {
    HOLDFAST_RETURN_IF_ERROR(bench->residency().PrepareInBackground({kBenchKept}));
  }
  result.prepare_seconds = SecondsSince(start);

  for (int i = 0; i < c.cycles; ++i) {
    ShowStage(absl::StrCat(c.name, ": cycle ", i + 1));
    if (i > 0 && c.changed > 0) {
      HOLDFAST_RETURN_IF_ERROR(
          bench->Rewrite(c.changed, static_cast<std::uint64_t>(i) << std::uint64_t{40}));
    }
    HOLDFAST_ASSIGN_OR_RETURN(result.cycles.emplace_back(), RunCycle(device, *bench, c, result));
  }
  result.process_growth_bytes -= static_cast<std::int64_t>(at_start.process_bytes);
  bench.reset();
  ShowStage(absl::StrCat(c.name, ": plain copy"));
  HOLDFAST_ASSIGN_OR_RETURN(result.plain,
                            MeasurePlainCopy(device, result.kept_bytes, c.arena.chunk_bytes));
  ClearProgress();
  return result;
}

}  // namespace holdfast
