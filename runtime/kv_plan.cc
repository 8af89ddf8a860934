#include "runtime/kv_plan.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "runtime/kv_groups.h"
#include "runtime/kv_sizing.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kExecutableBytesPerOperation = 3400;
constexpr std::uint64_t kExecutableBytesInContext = 2 * kMiB;
constexpr std::uint64_t kExecutableStep = 2 * kMiB;

std::int64_t Signed(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }

// Whole pages of `bytes`, whose last granule the cache would take whole.
std::int64_t PagesOf(std::int64_t bytes, std::uint64_t granularity, const KvPlan& plan) {
  if (bytes <= 0) return 0;
  const std::uint64_t fits = AlignDown(static_cast<std::uint64_t>(bytes), granularity);
  return std::min<std::int64_t>(Signed(fits / plan.page_bytes), plan.most_pages);
}

// Whole pages of a budget of the cache's own: what its last granule has beyond is rounding.
std::int64_t PagesOfBudget(const KvBudget& budget, const KvPlan& plan) {
  if (const auto* blocks = std::get_if<CacheBlocks>(&budget)) return blocks->blocks;
  return std::min<std::int64_t>(Signed(std::get<CacheBytes>(budget).bytes / plan.page_bytes),
                                plan.most_pages);
}

std::int64_t ShareInParts(const DeviceShare& share) {
  return std::llround(share.share * static_cast<double>(kShareOne));
}

std::uint64_t ShareOf(std::uint64_t capacity, const DeviceShare& share) {
  return static_cast<std::uint64_t>(static_cast<double>(capacity) * share.share);
}

std::uint64_t Less(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

std::uint64_t EstimateExecutableBytes(std::uint64_t operations) {
  return AlignUp(Less(operations * kExecutableBytesPerOperation, kExecutableBytesInContext),
                 kExecutableStep);
}

std::uint64_t HeadroomMargin(std::uint64_t capacity_bytes) {
  return std::min<std::uint64_t>(kGiB, capacity_bytes / 64);
}

absl::Status PlanClassicOrder(const DeviceInfo& device, const KvBudget& budget,
                              const KvEstimates& estimates, KvPlan& plan) {
  HOLDFAST_RETURN_IF_ERROR(CheckKvBudget(budget));
  const MemoryProfile& profile = estimates.profile;
  plan.estimated_used_bytes = Less(profile.closing.held_bytes, estimates.committed_bytes);
  plan.estimated_transient_bytes = profile.transient_bytes();
  plan.estimated_executable_bytes = estimates.executable_bytes;
  const auto* share = std::get_if<DeviceShare>(&budget);
  if (share == nullptr) {
    plan.classic.pages = PagesOfBudget(budget, plan);
    plan.classic.available_bytes = plan.classic.pages * Signed(plan.page_bytes);
    return absl::OkStatus();
  }
  // What we held at the start is ours to use again.
  const MemorySnapshot& opening = profile.opening;
  const absl::StatusOr<KvSizing> sizing =
      ClassicKvBlocks({.total = Signed(device.capacity_bytes),
                       .free = Signed(opening.free_bytes + (opening.own ? opening.held_bytes : 0)),
                       .utilization = ShareInParts(*share),
                       .non_kv = Signed(plan.estimated_used_bytes + plan.estimated_transient_bytes),
                       .graphs = Signed(plan.estimated_executable_bytes),
                       .block_bytes = Signed(plan.page_bytes)});
  if (!sizing.ok()) {
    plan.classic_refusal = std::string(sizing.status().message());
    return absl::OkStatus();
  }
  plan.classic.available_bytes = sizing->available;
  plan.classic.pages = PagesOf(sizing->available, device.granularity, plan);
  return absl::OkStatus();
}

absl::Status PlanMeasuredOrder(const DeviceInfo& device, const KvBudget& budget,
                               const MemorySnapshot& now, std::uint64_t committed_bytes,
                               KvPlan& plan) {
  HOLDFAST_RETURN_IF_ERROR(CheckKvBudget(budget));
  const std::uint64_t capacity = device.capacity_bytes;
  const std::uint64_t granularity = device.granularity;
  const std::uint64_t reachable = now.free_bytes + committed_bytes;
  plan.own_bytes = now.own;
  plan.used_bytes = Less(now.held_bytes, committed_bytes);
  if (const auto* share = std::get_if<DeviceShare>(&budget)) {
    plan.budget_bytes = ShareOf(capacity, *share);
    plan.headroom_bytes = Less(reachable, HeadroomMargin(capacity));
    plan.measured.available_bytes =
        std::min(Signed(plan.budget_bytes) - Signed(plan.used_bytes), Signed(plan.headroom_bytes));
    plan.measured.pages = PagesOf(plan.measured.available_bytes, granularity, plan);
    return absl::OkStatus();
  }
  // The user names the figure, and no margin is taken from it.
  plan.headroom_bytes = reachable;
  const std::int64_t wanted = PagesOfBudget(budget, plan);
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::uint64_t bytes,
      CheckedMultiply(static_cast<std::uint64_t>(wanted), plan.page_bytes, "KV cache"));
  plan.budget_bytes = plan.used_bytes + AlignUp(bytes, granularity);
  plan.measured.available_bytes = std::min(Signed(bytes), Signed(reachable));
  plan.measured.pages = std::min(wanted, PagesOf(Signed(reachable), granularity, plan));
  return absl::OkStatus();
}

absl::Status CheckKvPlan(const KvBudget& budget, const KvPlan& plan) {
  absl::Status one = CheckOneSequenceFits(plan.measured.pages, plan.needed_pages - kReservedBlocks);
  if (!one.ok()) {
    return Annotate(one, absl::StrCat("of ", FormatBytes(plan.budget_bytes),
                                      " that the process may hold, everything but the cache takes ",
                                      FormatBytes(plan.used_bytes)));
  }
  const bool exact = !std::holds_alternative<DeviceShare>(budget);
  const std::int64_t wanted = exact ? PagesOfBudget(budget, plan) : 0;
  if (plan.measured.pages >= wanted) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kOutOfMemory,
                    .object = "KV cache",
                    .need = static_cast<std::uint64_t>(wanted),
                    .have = static_cast<std::uint64_t>(plan.measured.pages)},
                   absl::StrCat(KvBudgetText(budget), " are not free on the device; ",
                                wanted - plan.measured.pages, " blocks are missing"));
}

}  // namespace holdfast
