#include "runtime/start_plan.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

// Measured on an H200, driver 580 (docs/results: demo-ledger): what a process holds before it loads
// anything, local memory left out; the code of our kernels; cuBLASLt.
constexpr std::uint64_t kContextBytes = 258 * kMiB;
constexpr std::uint64_t kModulesBytes = 2 * kMiB;
constexpr std::uint64_t kLibrariesBytes = 2 * kMiB;
// CUDA keeps room for the stack of every thread a multiprocessor can hold (2048 since Volta), 1024
// bytes each unless a kernel needs more: 264 MiB on 132 multiprocessors, as measured.
constexpr std::uint64_t kResidentThreads = 2048;
constexpr std::uint64_t kStackBytes = 1024;

// A device whose addresses are planned over: no page of it is taken.
constexpr std::uint64_t kDryCapacity = 2 * kMiB;

void AppendDriverLines(const DeviceInfo& device, std::uint64_t operations, StartPlan& plan) {
  // The host device's driver takes nothing, or what its options pretend.
  if (!device.is_cuda) return;
  const auto add = [&](const char* owner, std::uint64_t bytes, std::string why) {
    plan.lines.push_back({.owner = owner,
                          .kind = PlanKind::kDriver,
                          .planned_bytes = bytes,
                          .measured_bytes = {},
                          .why = std::move(why)});
  };
  const auto multiprocessors = static_cast<std::uint64_t>(std::max(device.multiprocessors, 1));
  add(kContextOwner, kContextBytes, "as on an H200, driver 580");
  add(kLocalMemoryOwner, multiprocessors * kResidentThreads * kStackBytes,
      absl::StrCat(multiprocessors, " multiprocessors x ", kResidentThreads, " threads x ",
                   kStackBytes, " B of stack"));
  add(kModulesOwner, kModulesBytes, "as on an H200, driver 580");
  add(kLibrariesOwner, kLibrariesBytes, "cuBLASLt, as on an H200");
  add(kExecutablesOwner, EstimateExecutableBytes(operations),
      absl::StrCat(operations, " nodes of all graphs"));
}

std::string GroupOwner(const GroupSpec& spec) {
  return absl::StrCat(spec.tag, "/", RoleName(spec.role));
}

}  // namespace

// The part of an engine's start that takes no memory.
class StartPlanner {
 public:
  static absl::StatusOr<StartPlan> Plan(const DeviceInfo& info, std::unique_ptr<Model> model,
                                        const EngineOptions& options) {
    HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Device> dry,
                              OpenDevice("host", {.host_capacity_bytes = kDryCapacity}));
    std::unique_ptr<Engine> engine(new Engine(*dry, std::move(model), options));
    engine->options_.on_stage = nullptr;
    HOLDFAST_RETURN_IF_ERROR(engine->CheckOptions());
    HOLDFAST_RETURN_IF_ERROR(engine->MakeArena());
    HOLDFAST_RETURN_IF_ERROR(engine->model_->ReserveSpans(*engine->arena_));
    HOLDFAST_RETURN_IF_ERROR(engine->ReserveSpans());
    HOLDFAST_RETURN_IF_ERROR(engine->MeasureBuckets());

    StartPlan plan{.device = info, .kv = engine->kv_plan_};
    plan.operations = engine->graphs_->operations();
    AppendArenaLines(*engine, plan);
    AppendDriverLines(info, plan.operations, plan);
    HOLDFAST_RETURN_IF_ERROR(SizeCache(*engine, plan));
    return plan;
  }

 private:
  // All groups but the cache's, in the arena's order.
  static void AppendArenaLines(Engine& engine, StartPlan& plan) {
    std::map<std::string, std::size_t> by_owner;
    Arena& arena = *engine.arena_;
    std::lock_guard<std::mutex> lock(arena.transition_mutex());
    for (const ArenaGroup& group : arena.groups()) {
      if (group.spec.role == Role::kCache || group.reserved_bytes == 0) continue;
      const std::string owner = GroupOwner(group.spec);
      const auto [found, added] = by_owner.try_emplace(owner, plan.lines.size());
      if (added) plan.lines.push_back({.owner = owner, .measured_bytes = {}});
      PlanLine& line = plan.lines[found->second];
      line.planned_bytes += AlignUp(group.reserved_bytes, plan.device.granularity);
      line.why =
          absl::StrCat(line.why, line.why.empty() ? "" : ", ", group.reserved_bytes, " B of spans");
    }
  }

  // What everything else leaves, as the measured order will find it.
  static absl::Status SizeCache(const Engine& engine, StartPlan& plan) {
    const KvBudget budget = engine.options_.kv_budget();
    const std::uint64_t used = plan.planned_bytes();
    const std::uint64_t capacity = plan.device.capacity_bytes;
    const MemorySnapshot then{
        .held_bytes = used, .free_bytes = capacity - std::min(capacity, used), .own = true};
    HOLDFAST_RETURN_IF_ERROR(PlanMeasuredOrder(plan.device, budget, then, 0, plan.kv));
    plan.kv.pages = static_cast<std::int32_t>(plan.kv.measured.pages);
    plan.kv_refusal = std::string(CheckKvPlan(budget, plan.kv).message());
    const std::uint64_t bytes = static_cast<std::uint64_t>(plan.kv.pages) * plan.kv.page_bytes;
    plan.lines.push_back({.owner = absl::StrCat(kCacheTag, "/", RoleName(Role::kCache)),
                          .planned_bytes = AlignUp(bytes, plan.device.granularity),
                          .measured_bytes = {},
                          .why = absl::StrCat(plan.kv.pages, " of ", plan.kv.most_pages,
                                              " pages of ", plan.kv.page_bytes, " B")});
    return absl::OkStatus();
  }
};

bool PlanLine::holds(std::uint64_t granularity) const {
  if (!measured_bytes.has_value()) return true;
  const std::int64_t off = std::abs(*measured_bytes - static_cast<std::int64_t>(planned_bytes));
  std::int64_t bound = static_cast<std::int64_t>(granularity);
  if (kind == PlanKind::kDriver) bound = std::max(bound, std::abs(*measured_bytes) / 10);
  return off <= bound;
}

std::uint64_t StartPlan::planned_bytes() const {
  std::uint64_t bytes = 0;
  for (const PlanLine& line : lines) bytes += line.planned_bytes;
  return bytes;
}

const PlanLine* StartPlan::Find(const std::string& owner) const {
  for (const PlanLine& line : lines) {
    if (line.owner == owner) return &line;
  }
  return nullptr;
}

std::int64_t StartPlan::TokensOf(std::uint64_t bytes) const {
  // bytes * page_tokens may leave 64 bits.
  const std::uint64_t pages = bytes / kv.page_bytes, rest = bytes % kv.page_bytes;
  const auto tokens = static_cast<std::uint64_t>(kv.page_tokens);
  return static_cast<std::int64_t>(pages * tokens + rest * tokens / kv.page_bytes);
}

bool StartPlan::holds() const {
  return std::all_of(lines.begin(), lines.end(),
                     [&](const PlanLine& line) { return line.holds(device.granularity); });
}

absl::StatusOr<StartPlan> PlanStart(const DeviceInfo& device, std::unique_ptr<Model> model,
                                    const EngineOptions& options) {
  return StartPlanner::Plan(device, std::move(model), options);
}

void PutMeasured(const LedgerReport& ledger, StartPlan& plan) {
  for (PlanLine& line : plan.lines) line.measured_bytes = 0;
  for (const LedgerLine& put : ledger.lines) {
    auto line = std::find_if(plan.lines.begin(), plan.lines.end(),
                             [&](const PlanLine& l) { return l.owner == put.owner; });
    if (line == plan.lines.end()) {
      if (put.bytes == 0) continue;
      plan.lines.push_back({.owner = put.owner,
                            .kind = put.what == "driver" ? PlanKind::kDriver : PlanKind::kArena,
                            .measured_bytes = 0,
                            .why = "not planned"});
      line = std::prev(plan.lines.end());
    }
    *line->measured_bytes += put.bytes;
  }
}

}  // namespace holdfast
