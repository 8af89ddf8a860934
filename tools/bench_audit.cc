#include "tools/bench_audit.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/arena.h"
#include "device/device.h"
#include "device/error.h"
#include "graphs/audit.h"
#include "runtime/kernels/dense.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int32_t kSpans = 256;  // as many as a model of some tens of layers has
constexpr std::int64_t kSide = 64;    // of the matrices
constexpr std::uint64_t kSpanBytes = kSide * kSide * 4;
constexpr std::uint64_t kMostWorkspace = 256 * kMiB;  // address space only
constexpr std::size_t kWideBytes = 1720;  // the parameter of a cuBLASLt kernel (nvjet, H200)
constexpr double kPlainLimit = 1, kGemmLimit = 2;  // milliseconds per 1000 nodes

double MedianMs(std::int32_t repeats, double nodes, const std::function<void()>& body) {
  std::vector<double> times;
  for (std::int32_t i = 0; i < repeats; ++i) {
    const Clock::time_point start = Clock::now();
    body();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[static_cast<std::size_t>(repeats / 2)] * 1000 / nodes;
}

class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> Create(Device& device,
                                                       const BenchAuditOptions& options) {
    std::unique_ptr<Bench> bench(new Bench(device, options));
    HOLDFAST_ASSIGN_OR_RETURN(
        bench->arena_,
        Arena::Create(device, {.name = "bench audit",
                               .groups = {{.tag = "state", .extent_bytes = 2 * kSpans * kSpanBytes},
                                          {.tag = "workspace",
                                           .role = Role::kScratch,
                                           .extent_bytes = kMostWorkspace}}}));
    for (std::int32_t i = 0; i < kSpans; ++i) {
      HOLDFAST_ASSIGN_OR_RETURN(
          const SpanId span,
          bench->arena_->Reserve(
              {.name = absl::StrCat("span.", i), .tag = "state", .bytes = kSpanBytes}));
      bench->spans_.push_back(bench->arena_->range(span).base);
    }
    HOLDFAST_RETURN_IF_ERROR(bench->arena_->CommitTag("state"));
    HOLDFAST_ASSIGN_OR_RETURN(bench->stream_, device.CreateStream("bench audit"));
    return bench;
  }

  absl::StatusOr<AuditCost> Plain() {
    return Captured("plain", kPlainLimit, [this](std::int32_t i) {
      const SiluMulParams params{.gate = At(i).As<const void>(),
                                 .up = At(i + 1).As<const void>(),
                                 .out = At(i + 2).As<void>(),
                                 .count = kSide * kSide};
      return Launch(device_, *stream_, SiluMulOp(DType::kF32), SiluMulShape(params), params);
    });
  }

  absl::StatusOr<AuditCost> Gemm() {
    HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<GemmPlan> plan,
                              device_.PlanGemm({.name = "bench",
                                                .m = kSide,
                                                .n = kSide,
                                                .k = kSide,
                                                .lda = kSide,
                                                .ldb = kSide,
                                                .ldd = kSide,
                                                .in = DType::kF32,
                                                .out = DType::kF32}));
    DeviceAddress workspace;
    if (plan->workspace_bytes() > 0) {
      HOLDFAST_ASSIGN_OR_RETURN(const SpanId span,
                                arena_->Reserve({.name = "workspace",
                                                 .tag = "workspace",
                                                 .role = Role::kScratch,
                                                 .bytes = plan->workspace_bytes()}));
      HOLDFAST_RETURN_IF_ERROR(arena_->Commit(span));
      workspace = arena_->range(span).base;
    }
    return Captured("gemm", kGemmLimit, [&](std::int32_t i) {
      return device_.Gemm(*stream_, *plan,
                          {.a = At(i), .b = At(i + 1), .d = At(i + 2), .workspace = workspace});
    });
  }

  AuditCost Wide() {
    GraphView view;
    for (std::int32_t i = 0; i < options_.nodes; ++i) {
      NodeView& node = view.nodes.emplace_back();
      node.kind = NodeKind::kKernel;
      node.name = "wide";
      node.parameters = {{.offset = 0, .bytes = ParameterView::Bytes(kWideBytes)}};
      // What such a parameter holds: a few pointers, tensor maps, and sizes in pairs, which look
      // like addresses that the device has to be asked about.
      for (std::size_t word = 0; word + 8 <= kWideBytes; word += 8) {
        std::uint64_t value = word % 5 == 0 ? (std::uint64_t{64} << 32 | word) : word;
        if (word % 440 == 0) value = At(i + static_cast<std::int32_t>(word / 440)).value;
        std::memcpy(node.parameters[0].bytes.data() + word, &value, sizeof(value));
      }
    }
    AuditCost cost = Measure("wide", view);
    cost.limit_ms = kGemmLimit;
    return cost;
  }

 private:
  Bench(Device& device, const BenchAuditOptions& options) : device_(device), options_(options) {}

  DeviceAddress At(std::int32_t i) const { return spans_[static_cast<std::size_t>(i % kSpans)]; }

  template <typename Enqueue>
  absl::StatusOr<AuditCost> Captured(const char* name, double limit, Enqueue enqueue) {
    HOLDFAST_RETURN_IF_ERROR(enqueue(0));  // code is loaded before the capture
    HOLDFAST_RETURN_IF_ERROR(device_.Synchronize(*stream_));
    HOLDFAST_RETURN_IF_ERROR(device_.BeginCapture(*stream_));
    absl::Status recorded;
    for (std::int32_t i = 0; i < options_.nodes && recorded.ok(); ++i) recorded = enqueue(i);
    HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<CapturedGraph> graph,
                              device_.EndCapture(*stream_));
    HOLDFAST_RETURN_IF_ERROR(recorded);
    HOLDFAST_ASSIGN_OR_RETURN(const GraphView view, graph->View());
    AuditCost cost = Measure(name, view);
    cost.limit_ms = limit;
    cost.read_ms = MedianMs(options_.repeats, static_cast<double>(view.nodes.size()),
                            [&] { graph->View().status().IgnoreError(); });
    return cost;
  }

  AuditCost Measure(const char* name, const GraphView& view) {
    const AuditReport report = Audit(view, device_, arena_.get());
    const double nodes = static_cast<double>(view.nodes.size());
    return {
        .graph = name,
        .nodes = view.nodes.size(),
        .words = report.words,
        .pointers = report.pointers.size(),
        .audit_ms = MedianMs(options_.repeats, nodes, [&] { Audit(view, device_, arena_.get()); })};
  }

  Device& device_;
  const BenchAuditOptions& options_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Stream> stream_;
  std::vector<DeviceAddress> spans_;
};

absl::Status CheckOptions(const BenchAuditOptions& options) {
  if (options.nodes < 1 || options.nodes > 1'000'000) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "--nodes"},
                     "must be 1 to 1000000");
  }
  if (options.repeats < 1 || options.repeats > 100'000) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "--repeats"},
                     "must be 1 to 100000");
  }
  return absl::OkStatus();
}

}  // namespace

bool BenchAuditReport::within_limits() const {
  return std::all_of(costs.begin(), costs.end(),
                     [](const AuditCost& cost) { return cost.total_ms() <= cost.limit_ms; });
}

absl::StatusOr<BenchAuditReport> BenchAudit(const BenchAuditOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(CheckOptions(options));
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(options.device));
  BenchAuditReport report{.device = device->info().name, .driver = device->info().driver};
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Bench> bench, Bench::Create(*device, options));
  HOLDFAST_ASSIGN_OR_RETURN(report.costs.emplace_back(), bench->Plain());
  HOLDFAST_ASSIGN_OR_RETURN(report.costs.emplace_back(), bench->Gemm());
  report.costs.push_back(bench->Wide());
  return report;
}

std::string BenchAuditText(const BenchAuditReport& report) {
  std::string text = absl::StrCat("device ", report.device, ", driver ", report.driver,
                                  "\nmilliseconds per 1000 nodes, medians\n");
  for (const AuditCost& cost : report.costs) {
    absl::StrAppendFormat(&text,
                          "  %-6s read %7.3f  audit %7.3f  total %7.3f  (at most %.0f; %d nodes, "
                          "%d words, %d pointers)\n",
                          cost.graph, cost.read_ms, cost.audit_ms, cost.total_ms(), cost.limit_ms,
                          cost.nodes, cost.words, cost.pointers);
  }
  return text;
}

std::string BenchAuditJson(const BenchAuditReport& report) {
  nlohmann::ordered_json costs = nlohmann::ordered_json::array();
  for (const AuditCost& cost : report.costs) {
    costs.push_back({{"graph", cost.graph},
                     {"nodes", cost.nodes},
                     {"words", cost.words},
                     {"pointers", cost.pointers},
                     {"read_ms_per_1000_nodes", cost.read_ms},
                     {"audit_ms_per_1000_nodes", cost.audit_ms},
                     {"limit_ms_per_1000_nodes", cost.limit_ms}});
  }
  const nlohmann::ordered_json json = {{"bench", "audit"},
                                       {"device", report.device},
                                       {"driver", report.driver},
                                       {"version", HOLDFAST_VERSION},
                                       {"graphs", std::move(costs)}};
  return json.dump(1) + "\n";
}

}  // namespace holdfast
