// The rule `kv_plan` over the three formulas of kv_sizing.h.
#include <algorithm>

#include "attention/check_field.h"
#include "device/bytes.h"
#include "device/error.h"
#include "runtime/kv_groups.h"
#include "runtime/kv_sizing.h"

namespace holdfast {
namespace {

constexpr char kName[] = "kv_plan";

enum Order : std::int64_t { kExtensible, kCeiling, kClassic };

struct KvPlanKeys {
  std::int64_t order = kExtensible;
  std::int64_t block_bytes = 0, free = 0;
  std::int64_t init_free = 0, committed = 0, requested = 0, peak = 0, extra = 0;
  std::int64_t segments = 1, granule = 2 * static_cast<std::int64_t>(kMiB), committed_blocks = 0,
               capacity_blocks = 0;
  std::int64_t total = 0, utilization = kShareOne / 10 * 9, non_kv = 0, graphs = 0, other = 0;
  std::int64_t kv_bytes = 0, blocks = 0;
  std::int64_t max_model_len = 0, block_size = 64, num_speculative_tokens = 0;
};

const KeyTable<KvPlanKeys>& Table() {
  using K = KvPlanKeys;
  static const KeyTable<K> table = {
      Choice("order", &K::order, {"extensible", "ceiling", "classic"},
             "measured, before warm-up, or estimated"),
      Bytes("block_bytes", &K::block_bytes, 1, "one block of all layers"),
      Bytes("free", &K::free, 0, "free now; classic: before anything was loaded"),
      Bytes("init_free", &K::init_free, 0, "extensible: free before anything was loaded"),
      Bytes("committed", &K::committed, 0, "extensible, ceiling: pages behind the cache already"),
      Bytes("requested", &K::requested, 0, "extensible: of the device, for everything"),
      Bytes("peak", &K::peak, 0, "extensible, ceiling: transient, of the largest pass"),
      Bytes("extra", &K::extra, 0, "extensible: still to come"),
      Count("segments", &K::segments, 0, 1 << 20, "ceiling: ranges the cache is committed in"),
      Bytes("granule", &K::granule, 0, "ceiling: of a mapping"),
      Count("committed_blocks", &K::committed_blocks, 0, kMostCount, "ceiling: never fewer"),
      Count("capacity_blocks", &K::capacity_blocks, 0, kMostCount,
            "ceiling: never more; 0: no limit"),
      Bytes("total", &K::total, 0, "classic: of the device"),
      Bind<K>({.name = "utilization",
               .type = KeyType::kShare,
               .most = kShareOne,
               .doc = "classic: share of total that may be in use"},
              &K::utilization),
      Bytes("non_kv", &K::non_kv, 0, "classic: consumed, and the transient peak"),
      Bytes("graphs", &K::graphs, 0, "classic: estimate of what capture takes"),
      Bytes("other", &K::other, 0, "classic: kept for others"),
      Bytes("kv_bytes", &K::kv_bytes, 0, "instead of all that: bytes for the cache"),
      Count("blocks", &K::blocks, 0, kMostCount,
            "instead of all that: blocks, the null one among them"),
      Count("max_model_len", &K::max_model_len, 0, kMostCount,
            "longest sequence, in tokens; 0: not asked whether it fits"),
      Count("block_size", &K::block_size, 1, 1 << 20, "tokens of a block"),
      Count("num_speculative_tokens", &K::num_speculative_tokens, 0, 4096, "draft tokens"),
  };
  return table;
}

// What an order cannot do without; 0 is as good as missing.
absl::Status CheckNeeded(const KvPlanKeys& k) {
  const struct {
    Order order;
    const char* key;
    std::int64_t value;
  } needed[] = {{kExtensible, "init_free", k.init_free},
                {kExtensible, "requested", k.requested},
                {kCeiling, "free", k.free},
                {kClassic, "free", k.free},
                {kClassic, "total", k.total}};
  for (const auto& one : needed) {
    if (one.order == k.order && one.value == 0) {
      return RefuseField(kName, one.key, "missing or 0", kByteSizeGrammar);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<KvSizing> SizeIt(const KvPlanKeys& k) {
  if (k.blocks > 0) return KvSizing{.blocks = k.blocks};
  if (k.block_bytes == 0) {
    return RefuseField(kName, "block_bytes", "missing", kByteSizeGrammar);
  }
  if (k.kv_bytes > 0) {
    return KvSizing{.blocks = k.kv_bytes / k.block_bytes, .available = k.kv_bytes};
  }
  HOLDFAST_RETURN_IF_ERROR(CheckNeeded(k));
  switch (static_cast<Order>(k.order)) {
    case kExtensible:
      return ExtensibleKvBlocks(
          {k.init_free, k.free, k.committed, k.requested, k.peak, k.extra, k.block_bytes});
    case kCeiling:
      return WarmupCeilingKvBlocks({k.free, k.committed, k.peak, k.segments, k.granule,
                                    k.block_bytes, k.committed_blocks,
                                    k.capacity_blocks > 0 ? k.capacity_blocks : INT64_MAX});
    case kClassic:
      return ClassicKvBlocks(
          {k.total, k.free, k.utilization, k.non_kv, k.graphs, k.other, k.block_bytes});
  }
  return MakeError({.kind = ErrorKind::kInternal, .object = kName}, "unknown order");
}

absl::StatusOr<SizingResult> KvPlan(const KvPlanKeys& keys) {
  if (keys.kv_bytes > 0 && keys.blocks > 0) {
    return RefuseField(kName, "blocks", std::to_string(keys.blocks),
                       "left out if kv_bytes is given");
  }
  HOLDFAST_ASSIGN_OR_RETURN(const KvSizing sizing, SizeIt(keys));
  const KvPageSpec page{.kind = KvKind::kFull, .page_tokens = keys.block_size};
  const std::int64_t need =
      keys.max_model_len == 0
          ? 0
          : kReservedBlocks + PagesOfSequence(page, {.tokens = keys.max_model_len,
                                                     .draft_tokens = keys.num_speculative_tokens});
  const std::int64_t usable = std::max<std::int64_t>(sizing.blocks - kReservedBlocks, 0);
  const auto count = [](const char* name, std::int64_t value) {
    return SizingFigure{.name = name, .values = {value}};
  };
  const auto bytes = [](const char* name, std::int64_t value) {
    return SizingFigure{.name = name, .values = {value}, .is_bytes = true};
  };
  return SizingResult{
      .figures = {count("blocks", sizing.blocks), count("usable_blocks", usable),
                  count("tokens", usable * keys.block_size), count("needed_blocks", need),
                  count("missing_blocks", std::max<std::int64_t>(need - sizing.blocks, 0)),
                  bytes("available_bytes", sizing.available),
                  bytes("requested_bytes", sizing.requested), bytes("non_kv_bytes", sizing.non_kv),
                  bytes("headroom_bytes", sizing.headroom), bytes("margin_bytes", sizing.margin),
                  bytes("reserve_bytes", sizing.reserve)}};
}

}  // namespace

SizingRule KvPlanRule() {
  return MakeRule(
      {.name = kName,
       .doc = "blocks of KV cache a device takes, and whether one sequence fits",
       .formula =
           "extensible: non_kv = init_free - free - committed; headroom = free + committed;\n"
           "  margin = max(1 GiB, 3/4 peak);\n"
           "  available = min(requested - non_kv, headroom - margin) - peak - extra\n"
           "ceiling: headroom = free + committed; reserve = max(peak, headroom / 10);\n"
           "  margin = max(1 GiB, 3/4 reserve);\n"
           "  available = headroom - margin - reserve - segments * granule\n"
           "classic: available = ceil(total * utilization) - non_kv - graphs - other\n"
           "blocks = available // block_bytes, not below 0. One block is the null block.",
       .figures = {{"blocks", "in all, the null block among them"},
                   {"usable_blocks", "blocks without the null block"},
                   {"tokens", "usable_blocks * block_size"},
                   {"needed_blocks",
                    "of one sequence of max_model_len and its draft tokens, and "
                    "the null block; 0 if not asked"},
                   {"missing_blocks", "needed_blocks - blocks, not below 0"},
                   {"available_bytes", "for the cache; below 0 if the rest does not fit"},
                   {"requested_bytes", "of the device, for everything"},
                   {"non_kv_bytes", "in use by everything else"},
                   {"headroom_bytes", "free, or committed already"},
                   {"margin_bytes", "left alone"},
                   {"reserve_bytes", "for transient peaks"}}},
      Table(), &KvPlan);
}

}  // namespace holdfast
