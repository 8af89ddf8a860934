// `holdfast bench sleep`: its flags, and where its report goes.
#include "tools/bench_sleep.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "device/bytes.h"
#include "tools/command.h"
#include "tools/report.h"
#include "tools/sleep_report.h"

namespace holdfast {
namespace {

struct BenchSleepOptions {
  SleepCase c{.name = "asked"};
  std::string suite;  // "goals" or none
  GoalSuiteOptions goals;
  std::string device = "auto";
  std::string json;
};

void AddFlags(CLI::App& bench, BenchSleepOptions& o) {
  static const std::map<std::string, PoolChoice> pools = {{"none", PoolChoice::kNone},
                                                          {"prepared", PoolChoice::kPrepared},
                                                          {"background", PoolChoice::kBackground}};
  static const std::map<std::string, bool> contents = {{"sealed", true}, {"unsealed", false}};
  static const std::map<std::string, bool> memories = {{"warm", true}, {"cold", false}};
  const CLI::AsSizeValue size(false);
  BenchArenaOptions& arena = o.c.arena;
  bench.add_option("--device", o.device, "auto, host or cuda:N")->capture_default_str();
  bench.add_option("--bytes", arena.kept_bytes, "kept, over all spans, e.g. 16GiB")
      ->transform(size);
  bench.add_option("--cache-bytes", arena.dropped_bytes, "dropped, e.g. 16GiB")->transform(size);
  bench.add_option("--chunk-bytes", arena.chunk_bytes, "largest physical allocation, e.g. 256MiB")
      ->transform(size);
  bench.add_option("--spans", arena.spans, "the kept bytes are cut into")->capture_default_str();
  bench
      .add_option("--pool", o.c.pool,
                  "host memory ahead of the first sleep: none, prepared, background")
      ->transform(CLI::CheckedTransformer(pools).description(""));
  bench.add_option("--contents", arena.sealed, "sealed or unsealed")
      ->transform(CLI::CheckedTransformer(contents).description(""));
  bench.add_flag("--through-pool", o.c.through_pool,
                 "load the contents through the pool, and leave them there");
  bench.add_option("--changed", o.c.changed, "share of the leaves rewritten between cycles")
      ->capture_default_str();
  bench.add_flag("--verify,!--no-verify", arena.residency.verify, "compare hashes at wake");
  bench.add_flag("--detect,!--no-detect", arena.residency.detect_unchanged,
                 "compare hashes at sleep, copy what changed");
  bench.add_option("--pause", o.c.pause_seconds, "seconds asleep")->capture_default_str();
  bench
      .add_option("--host-memory", o.c.warm_host,
                  "warm: as much was touched and freed before; or cold")
      ->transform(CLI::CheckedTransformer(memories).description(""));
  bench.add_option("--cycles", o.c.cycles, "sleeps and wakes")->capture_default_str();
  bench.add_option("--neighbour", o.goals.neighbour,
                   "rounds in which another process asks for what sleep freed (GPU)");
  bench
      .add_option("--suite", o.suite,
                  "goals: every case that has a goal, judged at 16 GiB on a GPU")
      ->check(CLI::IsMember({"goals"}).description(""));
  bench.add_option("--scale", o.goals.scale, "of the suite's 16 GiB")->capture_default_str();
  bench.add_flag("--big", o.goals.big, "the suite also keeps 64 GiB");
  bench.add_option("--json", o.json, "write the report to this file");
}

// What the host device has to be opened with.
std::uint64_t Capacity(const BenchSleepOptions& o) {
  if (o.suite.empty()) return DeviceBytesOf(o.c);
  std::uint64_t most = 64 * kMiB;
  if (!(o.goals.scale > 0 && o.goals.scale <= 1)) return most;  // refused by the suite
  for (const SleepCase& c : GoalCases(o.goals)) most = std::max(most, DeviceBytesOf(c));
  return most;
}

struct Output {
  std::string text, json;
  bool passed = true;
};

absl::StatusOr<Output> RunBench(const BenchSleepOptions& o) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                            OpenDevice(o.device, {.host_capacity_bytes = Capacity(o)}));
  const DeviceInfo& info = device->info();
  if (!o.suite.empty()) {
    HOLDFAST_ASSIGN_OR_RETURN(const GoalSuite suite, RunGoalSuite(*device, o.goals));
    return Output{GoalText(info, suite), GoalJson(info, suite), suite.passed()};
  }
  if (o.goals.neighbour != 0) {
    HOLDFAST_ASSIGN_OR_RETURN(const NeighbourResult neighbour,
                              RunNeighbour(*device, o.c.arena, o.goals.neighbour));
    return Output{NeighbourText(neighbour), NeighbourJson(info, neighbour),
                  neighbour.granted == neighbour.rounds};
  }
  HOLDFAST_ASSIGN_OR_RETURN(const SleepResult result, RunSleepCase(*device, o.c));
  return Output{SleepText(info, result), SleepJson(info, result)};
}

int BenchSleepMain(const BenchSleepOptions& options) {
  const absl::StatusOr<Output> output = RunBench(options);
  if (!output.ok()) return Complain(output.status());
  if (!options.json.empty()) {
    if (const absl::Status s = WriteFile(options.json, output->json); !s.ok()) return Complain(s);
  }
  std::fputs(output->text.c_str(), stdout);
  return output->passed ? kPass : kFail;
}

}  // namespace

Command AddBenchSleepCommand(CLI::App& parent) {
  const auto options = std::make_shared<BenchSleepOptions>();
  CLI::App* const parser =
      parent.add_subcommand("sleep", "what sleep and wake cost, beside a plain pinned copy");
  AddFlags(*parser, *options);
  return {parser, [options] { return BenchSleepMain(*options); }};
}

}  // namespace holdfast
