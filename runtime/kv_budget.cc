#include "runtime/kv_budget.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();

absl::Status Refuse(const std::string& object, const std::string& why) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = object}, why);
}

}  // namespace

absl::Status CheckKvBudget(const KvBudget& budget) {
  if (const auto* share = std::get_if<DeviceShare>(&budget)) {
    if (share->share > 0 && share->share <= 1) return absl::OkStatus();
    return Refuse("utilization", absl::StrCat("is ", share->share, "; above 0 and at most 1"));
  }
  if (const auto* cache = std::get_if<CacheBytes>(&budget)) {
    return cache->bytes > 0 ? absl::OkStatus() : Refuse("kv bytes", "is 0");
  }
  const std::int64_t blocks = std::get<CacheBlocks>(budget).blocks;
  if (blocks > 0 && blocks <= kMostBlocks) return absl::OkStatus();
  return Refuse("kv blocks", absl::StrCat("is ", blocks, "; from 1 to ", kMostBlocks));
}

absl::StatusOr<KvBudget> ChooseKvBudget(std::optional<double> utilization,
                                        std::optional<std::uint64_t> kv_bytes,
                                        std::optional<std::int64_t> kv_blocks) {
  std::vector<std::string> given;
  KvBudget budget = DeviceShare{};
  if (utilization.has_value()) {
    given.push_back("--utilization");
    budget = DeviceShare{*utilization};
  }
  if (kv_bytes.has_value()) {
    given.push_back("--kv-bytes");
    budget = CacheBytes{*kv_bytes};
  }
  if (kv_blocks.has_value()) {
    given.push_back("--kv-blocks");
    budget = CacheBlocks{*kv_blocks};
  }
  if (given.size() > 1) {
    return Refuse(given[1], absl::StrCat("excludes ", given[0], ": one budget, not two"));
  }
  HOLDFAST_RETURN_IF_ERROR(CheckKvBudget(budget));
  return budget;
}

std::string KvBudgetText(const KvBudget& budget) {
  if (const auto* share = std::get_if<DeviceShare>(&budget)) {
    return absl::StrCat(share->share, " of the device");
  }
  if (const auto* cache = std::get_if<CacheBytes>(&budget)) {
    return absl::StrCat(FormatBytes(cache->bytes), " of cache");
  }
  return absl::StrCat(std::get<CacheBlocks>(budget).blocks, " blocks");
}

}  // namespace holdfast
