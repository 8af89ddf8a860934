#include "tools/bench_capture.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "device/bytes.h"
#include "graphs/graph_set.h"
#include "tools/layered_step.h"
#include "tools/utc_date.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostLayers = 1000, kMostWidth = 16384, kMostRows = 8192;
constexpr std::uint64_t kMostScratch = 16 * kGiB;  // address space only

absl::Status CheckFlag(const std::string& flag, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = flag},
                   absl::StrCat("must be ", least, " to ", most));
}

absl::Status CheckOptions(const BenchCaptureOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(CheckFlag("--layers", options.layers, 1, kMostLayers));
  HOLDFAST_RETURN_IF_ERROR(CheckFlag("--width", options.width, 16, kMostWidth));
  if (options.width % 16 != 0) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "--width"},
                     "must be a multiple of 16");
  }
  return CheckFlag("--largest", options.largest, 1, kMostRows);
}

absl::StatusOr<SpanId> Commit(Arena& arena, const char* name, const char* tag, Role role,
                              std::uint64_t bytes) {
  HOLDFAST_ASSIGN_OR_RETURN(
      const SpanId span, arena.Reserve({.name = name, .tag = tag, .role = role, .bytes = bytes}));
  HOLDFAST_RETURN_IF_ERROR(arena.Commit(span));
  return span;
}

// Runs `part`, and says how long it took.
template <typename F>
absl::Status Timed(double& seconds, F&& part) {
  const Clock::time_point start = Clock::now();
  const absl::Status status = part();
  seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return status;
}

absl::Status Capture(Device& device, BenchCaptureReport& report) {
  const BenchCaptureOptions& options = report.options;
  const LayeredShape shape{.layers = options.layers,
                           .width = options.width,
                           .most_rows = options.largest,
                           .type = device.info().is_cuda ? DType::kBF16 : DType::kF32};
  const std::uint64_t weight_bytes = LayeredStep::WeightBytes(shape);
  const std::uint64_t state_bytes = LayeredStep::StateBytes(shape);
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::unique_ptr<Arena> arena,
      Arena::Create(
          device,
          {.name = "bench capture",
           .groups = {{.tag = "weights", .role = Role::kImmutable, .extent_bytes = weight_bytes},
                      {.tag = "state", .extent_bytes = state_bytes},
                      {.tag = "workspace", .role = Role::kScratch, .extent_bytes = kMostScratch}},
           .candidate_bases = {}}));
  HOLDFAST_ASSIGN_OR_RETURN(const SpanId weights,
                            Commit(*arena, "weights", "weights", Role::kImmutable, weight_bytes));
  HOLDFAST_ASSIGN_OR_RETURN(const SpanId state,
                            Commit(*arena, "state", "state", Role::kMutable, state_bytes));
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Lane> lane, Lane::Create(*arena, "bench"));
  const LayeredStep step(shape, weights, state);
  GraphSet set(*lane, [&](const GraphKey& key) { return step.Make(device, key.size); });
  HOLDFAST_ASSIGN_OR_RETURN(BucketList buckets, BucketList::Default(options.largest));
  HOLDFAST_RETURN_IF_ERROR(set.AddPhase(Phase::kDecode, std::move(buckets)));
  HOLDFAST_RETURN_IF_ERROR(Timed(report.measure_seconds, [&] { return set.Measure(); }));
  report.scratch_bytes = set.scratch_bytes();
  report.scratch_sum_bytes = set.scratch_sum_bytes();
  report.plan_ratio = set.plan_ratio();
  HOLDFAST_ASSIGN_OR_RETURN(const SpanId workspace, Commit(*arena, "workspace", "workspace",
                                                           Role::kScratch, set.scratch_bytes()));
  HOLDFAST_RETURN_IF_ERROR(Timed(report.warm_up_seconds, [&] { return set.WarmUp(workspace); }));
  HOLDFAST_RETURN_IF_ERROR(Timed(report.capture_seconds, [&] { return set.Capture(workspace); }));
  for (const Graph* graph : set.graphs()) {
    report.rows.push_back({.graph = graph->name(),
                           .nodes = graph->manifest().nodes,
                           .times = graph->times(),
                           .executable = graph->executable_memory()});
  }
  return absl::OkStatus();
}

nlohmann::json TimesJson(const CaptureTimes& times) {
  return {{"capture_ms", times.capture * 1e3},
          {"audit_ms", times.audit * 1e3},
          {"instantiate_ms", times.instantiate * 1e3},
          {"upload_ms", times.upload * 1e3}};
}

}  // namespace

CaptureTimes BenchCaptureReport::times() const {
  CaptureTimes sum;
  for (const CaptureRow& row : rows) {
    sum.capture += row.times.capture;
    sum.audit += row.times.audit;
    sum.instantiate += row.times.instantiate;
    sum.upload += row.times.upload;
  }
  return sum;
}

ExecutableMemory BenchCaptureReport::executable() const {
  ExecutableMemory sum;
  for (const CaptureRow& row : rows) sum += row.executable;
  return sum;
}

absl::StatusOr<BenchCaptureReport> BenchCapture(const BenchCaptureOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(CheckOptions(options));
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(options.device));
  BenchCaptureReport report{.options = options,
                            .device = device->info().name,
                            .driver = device->info().driver,
                            .date = UtcDate(),
                            .rows = {}};
  HOLDFAST_RETURN_IF_ERROR(Capture(*device, report));
  return report;
}

std::string BenchCaptureText(const BenchCaptureReport& report) {
  const CaptureTimes sum = report.times();
  const ExecutableMemory memory = report.executable();
  std::uint64_t nodes = 0;
  for (const CaptureRow& row : report.rows) nodes += row.nodes;
  return absl::StrFormat(
      "%s, driver %s: %d buckets of a %d-layer step, %d nodes in all\n"
      "measure %.1f ms, warm-up %.1f ms, capture and audit of all %.1f ms\n"
      "  capture %.1f ms, audit %.1f ms, instantiate %.1f ms, upload %.1f ms\n"
      "executables %s%s\n"
      "scratch %s (separate scratch for each bucket: %s), plan at most %.3f of the lower bound\n",
      report.device, report.driver, report.rows.size(), report.options.layers, nodes,
      report.measure_seconds * 1e3, report.warm_up_seconds * 1e3, report.capture_seconds * 1e3,
      sum.capture * 1e3, sum.audit * 1e3, sum.instantiate * 1e3, sum.upload * 1e3,
      FormatBytes(memory.bytes), memory.estimated ? " (estimated from the nodes)" : "",
      FormatBytes(report.scratch_bytes), FormatBytes(report.scratch_sum_bytes), report.plan_ratio);
}

std::string BenchCaptureJson(const BenchCaptureReport& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const CaptureRow& row : report.rows) {
    nlohmann::json out = TimesJson(row.times);
    out["graph"] = row.graph;
    out["nodes"] = row.nodes;
    out["executable_bytes"] = row.executable.bytes;
    rows.push_back(std::move(out));
  }
  const BenchCaptureOptions& o = report.options;
  const nlohmann::json json{
      {"name", "bench capture"},
      {"date", report.date},
      {"device", report.device},
      {"driver", report.driver},
      {"command", absl::StrCat("holdfast bench capture --device ", o.device, " --layers ", o.layers,
                               " --width ", o.width, " --largest ", o.largest)},
      {"buckets", report.rows.size()},
      {"measure_ms", report.measure_seconds * 1e3},
      {"warm_up_ms", report.warm_up_seconds * 1e3},
      {"capture_all_ms", report.capture_seconds * 1e3},
      {"sum", TimesJson(report.times())},
      {"executable_bytes", report.executable().bytes},
      {"executable_bytes_estimated", report.executable().estimated},
      {"scratch_bytes", report.scratch_bytes},
      {"scratch_sum_bytes", report.scratch_sum_bytes},
      {"plan_ratio", report.plan_ratio},
      {"rows", rows}};
  return json.dump(2) + "\n";
}

}  // namespace holdfast
