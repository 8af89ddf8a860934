// How many blocks of KV cache a device takes: the measured order, which captures first and commits
// the cache last, and the classic one, which estimates first. Source: vLLM's extensible cache and
// its GPU worker.
#ifndef HOLDFAST_RUNTIME_KV_SIZING_H_
#define HOLDFAST_RUNTIME_KV_SIZING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "attention/sizing/rule.h"

namespace holdfast {

// The figures of a plan, in bytes; each formula fills those it has.
struct KvSizing {
  std::int64_t blocks = 0;     // the null block among them
  std::int64_t available = 0;  // for the cache; below 0 if even the rest does not fit
  std::int64_t requested = 0;  // of the device, for everything
  std::int64_t non_kv = 0;     // in use by everything else
  std::int64_t headroom = 0;   // free, or committed to the cache already
  std::int64_t margin = 0;     // left alone
  std::int64_t reserve = 0;    // for transient peaks
};

// Inputs in bytes, each in [0, 2^60], block_bytes at least 1; else kInvalidArgument naming it.
struct ExtensibleKv {
  std::int64_t init_free = 0;  // free before anything was loaded
  std::int64_t free = 0;       // free now
  std::int64_t committed = 0;  // to the cache already
  std::int64_t requested = 0;  // of the device, for everything
  std::int64_t peak = 0;       // transient, of the largest pass
  std::int64_t extra = 0;      // still to come
  std::int64_t block_bytes = 0;
};
// non_kv = init_free - free - committed; headroom = free + committed;
// margin = max(1 GiB, 3/4 peak);
// available = min(requested - non_kv, headroom - margin) - peak - extra.
absl::StatusOr<KvSizing> ExtensibleKvBlocks(const ExtensibleKv& in);

// What may be committed before warm-up has shown how much the rest takes.
struct WarmupCeilingKv {
  std::int64_t free = 0, physical = 0;  // physical: pages behind the cache already
  std::int64_t peak = 0;                // profiled, of activations
  std::int64_t segments = 1, granule = 0;
  std::int64_t block_bytes = 0;
  std::int64_t committed_blocks = 0;
  std::int64_t capacity_blocks = INT64_MAX;  // of the reserved extent
};
// headroom = free + physical; reserve = max(peak, headroom / 10); margin = max(1 GiB, 3/4 reserve);
// available = headroom - margin - reserve - segments * granule; never below what is committed,
// never above the capacity.
absl::StatusOr<KvSizing> WarmupCeilingKvBlocks(const WarmupCeilingKv& in);

struct ClassicKv {
  std::int64_t total = 0, free = 0;      // of the device; free before anything was loaded
  std::int64_t utilization = kShareOne;  // in parts of kShareOne
  std::int64_t non_kv = 0;               // consumed, and the transient peak
  std::int64_t graphs = 0;               // estimate of what capture will take
  std::int64_t other = 0;                // kept for others, such as inter-process buffers
  std::int64_t block_bytes = 0;
};
// requested = ceil(total * utilization); available = requested - non_kv - graphs - other.
// kOutOfMemory (need, have) if `requested` is not free at the start.
absl::StatusOr<KvSizing> ClassicKvBlocks(const ClassicKv& in);

// The rule `kv_plan`: any of the three, and whether one sequence fits.
SizingRule KvPlanRule();

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KV_SIZING_H_
