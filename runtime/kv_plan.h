// How many blocks the KV cache gets, both ways.
//
// Measured order: everything else is there (weights, scratch, graphs), and the cache gets what is
// left of the budget. Classic order: what capture takes is estimated beforehand. The first decides;
// the second is computed beside it, so that both can be printed.
#ifndef HOLDFAST_RUNTIME_KV_PLAN_H_
#define HOLDFAST_RUNTIME_KV_PLAN_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "device/device.h"
#include "runtime/kv_budget.h"
#include "runtime/memory_profile.h"

namespace holdfast {

// What executables will hold, from the operations of all buckets. Measured on H200s, driver 580:
// 522 nodes 0, 6169 nodes 20 MiB, 14688 nodes 46 MiB (docs/results: demo-ledger, run-16gib,
// bench-capture). The driver takes steps of 2 MiB, and the first nodes lie in what the context had.
std::uint64_t EstimateExecutableBytes(std::uint64_t operations);

// Left alone on the device when the cache takes what is free: the driver's own late needs. A 64th
// of the device, at most 1 GiB.
std::uint64_t HeadroomMargin(std::uint64_t capacity_bytes);

// A way to size the cache, in bytes and pages.
struct KvFigure {
  std::int64_t available_bytes = 0;  // for the cache; below 0 if even the rest does not fit
  std::int64_t pages = 0;            // whole ones, the null page among them, at most most_pages
};

struct KvPlan {
  // The cache's shape. A page is a block: page_tokens of every layer, or, with groups of layers, of
  // one group.
  std::int32_t page_tokens = 0;
  std::uint64_t page_bytes = 0;
  std::int32_t most_pages = 0;    // what the extent was reserved for
  std::int32_t needed_pages = 0;  // of one longest sequence with its drafts, and the null page
  // The measured order
  std::int32_t pages = 0;            // in use by the cache, the null page among them
  std::uint64_t budget_bytes = 0;    // what this process may hold in all
  std::uint64_t used_bytes = 0;      // what it held when the cache was sized, the cache left out
  std::uint64_t headroom_bytes = 0;  // free, or committed to the cache already, less the margin
  bool own_bytes = true;             // false: the driver does not tell neighbours' bytes from ours
  KvFigure measured;
  // The classic order
  std::uint64_t estimated_used_bytes = 0;        // after the profile: held without the cache
  std::uint64_t estimated_transient_bytes = 0;   // held for a while during it
  std::uint64_t estimated_executable_bytes = 0;  // guessed before capture
  KvFigure classic;
  std::string classic_refusal;  // why that order would not have started; empty: it would

  std::int64_t tokens() const {
    return static_cast<std::int64_t>(pages > 0 ? pages - 1 : 0) * page_tokens;
  }
};

// Before capture.
struct KvEstimates {
  MemoryProfile profile;
  std::uint64_t committed_bytes = 0;   // of the cache, at the closing measurement
  std::uint64_t executable_bytes = 0;  // what capture will take
};

// Fills the classic order of a plan whose shape is set; for budgets that are no share it is the
// budget itself. kInvalidArgument for an impossible budget.
absl::Status PlanClassicOrder(const DeviceInfo& device, const KvBudget& budget,
                              const KvEstimates& estimates, KvPlan& plan);

// Fills the measured order, `now` being a snapshot with everything there, and `committed_bytes` the
// pages behind the cache in it. Does not judge whether it suffices.
//   share   available = min(share * capacity - used, free + committed - margin)
//   bytes   available = min(bytes, free + committed)
//   blocks  available = their bytes
absl::Status PlanMeasuredOrder(const DeviceInfo& device, const KvBudget& budget,
                               const MemorySnapshot& now, std::uint64_t committed_bytes,
                               KvPlan& plan);

// OK if the measured order gives the pages of one longest sequence and, for a budget of blocks,
// all of them are to be had. kOutOfMemory (need, have: in pages) naming what is missing.
absl::Status CheckKvPlan(const KvBudget& budget, const KvPlan& plan);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KV_PLAN_H_
