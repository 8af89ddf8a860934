#include "tools/bench_replay.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "device/bytes.h"
#include "graphs/graph.h"
#include "runtime/json.h"
#include "runtime/kernels/dense.h"
#include "tools/utc_date.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostNodes = 100'000;
constexpr std::int64_t kMostLaunches = 100'000'000;
constexpr int kWarmPairs = 1000;
constexpr int kPairsBetweenWaits = 8;  // so that the queue of a stream never fills
constexpr std::int64_t kElements = 64;

absl::Status BadFlag(const std::string& flag, const std::string& why) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = flag}, why);
}

absl::Status CheckOptions(const BenchReplayOptions& options) {
  if (options.launches < 1 || options.launches > kMostLaunches) {
    return BadFlag("--launches", absl::StrCat("must be 1 to ", kMostLaunches));
  }
  if (options.nodes.empty()) return BadFlag("--nodes", "names no graph");
  for (const int nodes : options.nodes) {
    if (nodes < 1 || nodes > kMostNodes) {
      return BadFlag("--nodes", absl::StrCat(nodes, " is not 1 to ", kMostNodes));
    }
  }
  return absl::OkStatus();
}

// The times, by value: they are sorted.
CallTimes Quantiles(std::vector<float> nanoseconds) {
  const auto at = [&](double share) {
    const auto place =
        nanoseconds.begin() +
        static_cast<std::ptrdiff_t>(share * static_cast<double>(nanoseconds.size() - 1));
    std::nth_element(nanoseconds.begin(), place, nanoseconds.end());
    return static_cast<double>(*place) / 1000;
  };
  return {.p50 = at(0.5), .p99 = at(0.99)};
}

template <typename F>
float Nanoseconds(F&& call) {
  const Clock::time_point start = Clock::now();
  call();
  return std::chrono::duration<float, std::nano>(Clock::now() - start).count();
}

class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> Create(Device& device) {
    std::unique_ptr<Bench> bench(new Bench);
    HOLDFAST_ASSIGN_OR_RETURN(
        bench->arena_, Arena::Create(device, {.name = "bench replay",
                                              .groups = {{.tag = "state", .extent_bytes = kMiB}},
                                              .candidate_bases = {}}));
    HOLDFAST_ASSIGN_OR_RETURN(
        bench->state_,
        bench->arena_->Reserve({.name = "state", .tag = "state", .bytes = 3 * kElements * 4}));
    HOLDFAST_RETURN_IF_ERROR(bench->arena_->CommitTag("state"));
    HOLDFAST_ASSIGN_OR_RETURN(bench->lane_, Lane::Create(*bench->arena_, "bench"));
    return bench;
  }

  absl::StatusOr<ReplayRow> Run(int nodes, std::int64_t launches) {
    const Step step = [this, nodes](StepContext& context) -> absl::Status {
      const DeviceAddress at = context.Resolve(state_);
      const SiluMulParams params{.gate = at.As<const void>(),
                                 .up = (at + kElements * 4).As<const void>(),
                                 .out = (at + 2 * kElements * 4).As<void>(),
                                 .count = kElements};
      for (int i = 0; i < nodes; ++i) {
        HOLDFAST_RETURN_IF_ERROR(
            context.Launch(SiluMulOp(DType::kF32), SiluMulShape(params), params));
      }
      return absl::OkStatus();
    };
    HOLDFAST_RETURN_IF_ERROR(RunEager(*lane_, "warm-up", step, {}));
    HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
    HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph,
                              Graph::Capture(*lane_, {.size = nodes}, step, {}));
    const BareLaunch bare = graph->GetBareLaunch();
    ReplayRow row{.nodes = nodes};
    std::vector<float> bare_times, replay_times;
    HOLDFAST_RETURN_IF_ERROR(Time(*graph, bare, kWarmPairs, bare_times, replay_times));
    bare_times.clear();
    replay_times.clear();
    HOLDFAST_RETURN_IF_ERROR(Time(*graph, bare, launches, bare_times, replay_times));
    row.bare = Quantiles(std::move(bare_times));
    row.replay = Quantiles(std::move(replay_times));
    return row;
  }

 private:
  Bench() = default;

  absl::Status Time(Graph& graph, const BareLaunch& bare, std::int64_t pairs,
                    std::vector<float>& bare_times, std::vector<float>& replay_times) {
    bare_times.reserve(static_cast<std::size_t>(pairs));
    replay_times.reserve(static_cast<std::size_t>(pairs));
    int failed = 0;
    absl::Status replayed;
    const auto time_bare = [&] { bare_times.push_back(Nanoseconds([&] { failed |= bare(); })); };
    const auto time_replay = [&] {
      replay_times.push_back(Nanoseconds([&] { replayed = graph.Replay(); }));
    };
    for (std::int64_t i = 0; i < pairs; ++i) {
      if (i % kPairsBetweenWaits == 0) HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
      // Neither is always the one that comes second.
      if (i % 2 == 0) {
        time_bare();
        time_replay();
      } else {
        time_replay();
        time_bare();
      }
      HOLDFAST_RETURN_IF_ERROR(replayed);
    }
    HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
    if (failed == 0) return absl::OkStatus();
    return MakeError({.kind = ErrorKind::kDriver, .object = graph.name(), .code = failed},
                     "the bare launch failed");
  }

  std::unique_ptr<Arena> arena_;
  SpanId state_;
  std::unique_ptr<Lane> lane_;
};

// Adds what PyTorch took to the rows of the same size.
absl::Status ReadTorch(BenchReplayReport& report) {
  const std::string& path = report.options.torch;
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path);
  if (!file) return MakeError({.kind = ErrorKind::kNotFound, .object = path}, "cannot be read");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  HOLDFAST_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, path));
  const absl::Status wrong = MakeError({.kind = ErrorKind::kCorrupted, .object = path},
                                       "is not what tools/torch_replay.py writes");
  if (!json.is_object() || !json.contains("rows") || !json["rows"].is_array()) return wrong;
  if (json.contains("torch") && json["torch"].is_string()) {
    report.torch_version = json["torch"].get<std::string>();
  }
  for (const nlohmann::json& row : json["rows"]) {
    for (const char* key : {"nodes", "p50_us", "p99_us"}) {
      if (!row.is_object() || !row.contains(key) || !row[key].is_number()) return wrong;
    }
    for (ReplayRow& own : report.rows) {
      if (row["nodes"] != own.nodes) continue;
      own.torch = CallTimes{row["p50_us"].get<double>(), row["p99_us"].get<double>()};
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool BenchReplayReport::within_goals() const {
  return !is_cuda || std::all_of(rows.begin(), rows.end(), [](const ReplayRow& row) {
    return row.overhead_p50() <= kReplayGoalP50 && row.overhead_p99() <= kReplayGoalP99;
  });
}

absl::StatusOr<BenchReplayReport> BenchReplay(const BenchReplayOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(CheckOptions(options));
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(options.device));
  BenchReplayReport report{.options = options,
                           .device = device->info().name,
                           .driver = device->info().driver,
                           .date = UtcDate(),
                           .torch_version = "",
                           .is_cuda = device->info().is_cuda,
                           .rows = {}};
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Bench> bench, Bench::Create(*device));
  for (const int nodes : options.nodes) {
    HOLDFAST_ASSIGN_OR_RETURN(report.rows.emplace_back(), bench->Run(nodes, options.launches));
  }
  HOLDFAST_RETURN_IF_ERROR(ReadTorch(report));
  return report;
}

std::string BenchReplayText(const BenchReplayReport& report) {
  std::string text =
      absl::StrFormat("%s, driver %s, %d launches of each kind, in turn; microseconds, p50 / p99\n",
                      report.device, report.driver, report.options.launches);
  for (const ReplayRow& row : report.rows) {
    absl::StrAppendFormat(&text,
                          "%5d nodes   bare launch %7.3f / %7.3f   replay %7.3f / %7.3f   "
                          "overhead %+6.3f / %+6.3f",
                          row.nodes, row.bare.p50, row.bare.p99, row.replay.p50, row.replay.p99,
                          row.overhead_p50(), row.overhead_p99());
    if (row.torch.has_value()) {
      absl::StrAppendFormat(&text, "   PyTorch %7.3f / %7.3f", row.torch->p50, row.torch->p99);
    }
    absl::StrAppend(&text, "\n");
  }
  if (report.is_cuda) {
    absl::StrAppendFormat(&text, "goal: overhead at most %.1f / %.1f: %s\n", kReplayGoalP50,
                          kReplayGoalP99, report.within_goals() ? "met" : "MISSED");
  }
  return text;
}

std::string BenchReplayJson(const BenchReplayReport& report) {
  const auto times = [](const CallTimes& t) {
    return nlohmann::json{{"p50_us", t.p50}, {"p99_us", t.p99}};
  };
  nlohmann::json rows = nlohmann::json::array();
  for (const ReplayRow& row : report.rows) {
    nlohmann::json out{{"nodes", row.nodes},
                       {"bare", times(row.bare)},
                       {"replay", times(row.replay)},
                       {"overhead", times({row.overhead_p50(), row.overhead_p99()})}};
    if (row.torch.has_value()) out["torch"] = times(*row.torch);
    rows.push_back(std::move(out));
  }
  nlohmann::json json{
      {"name", "bench replay"},
      {"date", report.date},
      {"device", report.device},
      {"driver", report.driver},
      {"command", absl::StrCat("holdfast bench replay --device ", report.options.device,
                               " --launches ", report.options.launches, " --nodes ",
                               absl::StrJoin(report.options.nodes, " "))},
      {"launches", report.options.launches},
      {"goals_us", {{"p50", kReplayGoalP50}, {"p99", kReplayGoalP99}}},
      {"within_goals", report.within_goals()},
      {"rows", rows}};
  if (!report.torch_version.empty()) json["torch"] = report.torch_version;
  return json.dump(2) + "\n";
}

}  // namespace holdfast
