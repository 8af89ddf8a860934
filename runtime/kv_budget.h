// How much the KV cache may take: one of three.
#ifndef HOLDFAST_RUNTIME_KV_BUDGET_H_
#define HOLDFAST_RUNTIME_KV_BUDGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace holdfast {

// Of the device's memory, in (0, 1]: what this process may hold in all once the cache is there. The
// cache gets what everything else leaves.
struct DeviceShare {
  double share = 0.9;
  bool operator==(const DeviceShare&) const = default;
};
// Of the cache itself: as many whole blocks as these bytes hold.
struct CacheBytes {
  std::uint64_t bytes = 0;
  bool operator==(const CacheBytes&) const = default;
};
// Exactly so many, the null block among them.
struct CacheBlocks {
  std::int64_t blocks = 0;
  bool operator==(const CacheBlocks&) const = default;
};
using KvBudget = std::variant<DeviceShare, CacheBytes, CacheBlocks>;

// kInvalidArgument naming the field: a share outside (0, 1], no bytes, no blocks or more than a
// block table counts.
absl::Status CheckKvBudget(const KvBudget& budget);

// The budget of a command line: the one that was given, or the default. kInvalidArgument naming
// both flags if two were given, or as CheckKvBudget.
absl::StatusOr<KvBudget> ChooseKvBudget(std::optional<double> utilization,
                                        std::optional<std::uint64_t> kv_bytes,
                                        std::optional<std::int64_t> kv_blocks);

std::string KvBudgetText(const KvBudget& budget);  // "0.9 of the device", "65 blocks"

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KV_BUDGET_H_
