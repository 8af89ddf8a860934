#include "runtime/kv_sizing.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "attention/check_field.h"
#include "attention/sizing/requests.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;  // sums of a few of them fit

absl::Status CheckBytes(std::initializer_list<std::pair<const char*, std::int64_t>> inputs,
                        std::int64_t block_bytes) {
  for (const auto& [name, value] : inputs) {
    HOLDFAST_RETURN_IF_ERROR(CheckField("kv_plan", name, value, 0, kMostBytes));
  }
  return CheckField("kv_plan", "block_bytes", block_bytes, 1, kMostBytes);
}

std::int64_t Margin(std::int64_t transient) {
  return std::max(static_cast<std::int64_t>(kGiB), transient * 3 / 4);
}

std::int64_t Blocks(std::int64_t available, std::int64_t block_bytes) {
  return std::max<std::int64_t>(available, 0) / block_bytes;
}

// ceil(total * share) without leaving 64 bits.
std::int64_t ShareOf(std::int64_t total, std::int64_t share) {
  return total / kShareOne * share + CeilDiv(total % kShareOne * share, kShareOne);
}

}  // namespace

absl::StatusOr<KvSizing> ExtensibleKvBlocks(const ExtensibleKv& in) {
  HOLDFAST_RETURN_IF_ERROR(CheckBytes({{"init_free", in.init_free},
                                       {"free", in.free},
                                       {"committed", in.committed},
                                       {"requested", in.requested},
                                       {"peak", in.peak},
                                       {"extra", in.extra}},
                                      in.block_bytes));
  KvSizing out{.requested = in.requested,
               .non_kv = in.init_free - in.free - in.committed,
               .headroom = in.free + in.committed,
               .margin = Margin(in.peak),
               .reserve = in.peak};
  out.available =
      std::min(in.requested - out.non_kv, out.headroom - out.margin) - in.peak - in.extra;
  out.blocks = Blocks(out.available, in.block_bytes);
  return out;
}

absl::StatusOr<KvSizing> WarmupCeilingKvBlocks(const WarmupCeilingKv& in) {
  HOLDFAST_RETURN_IF_ERROR(CheckBytes(
      {{"free", in.free}, {"physical", in.physical}, {"peak", in.peak}}, in.block_bytes));
  HOLDFAST_RETURN_IF_ERROR(CheckField("kv_plan", "segments", in.segments, 0, 1 << 20));
  HOLDFAST_RETURN_IF_ERROR(CheckField("kv_plan", "granule", in.granule, 0, kMostBytes >> 20));
  HOLDFAST_RETURN_IF_ERROR(
      CheckField("kv_plan", "committed_blocks", in.committed_blocks, 0, in.capacity_blocks));
  KvSizing out{.headroom = in.free + in.physical};
  out.reserve = std::max(in.peak, out.headroom / 10);
  out.margin = Margin(out.reserve);
  out.available = out.headroom - out.margin - out.reserve - in.segments * in.granule;
  out.blocks =
      std::clamp(Blocks(out.available, in.block_bytes), in.committed_blocks, in.capacity_blocks);
  return out;
}

absl::StatusOr<KvSizing> ClassicKvBlocks(const ClassicKv& in) {
  HOLDFAST_RETURN_IF_ERROR(CheckBytes({{"total", in.total},
                                       {"free", in.free},
                                       {"non_kv", in.non_kv},
                                       {"graphs", in.graphs},
                                       {"other", in.other}},
                                      in.block_bytes));
  HOLDFAST_RETURN_IF_ERROR(CheckField("kv_plan", "utilization", in.utilization, 0, kShareOne));
  KvSizing out{.requested = ShareOf(in.total, in.utilization), .non_kv = in.non_kv};
  if (in.free < out.requested) {
    return MakeError({.kind = ErrorKind::kOutOfMemory,
                      .object = "kv_plan free",
                      .need = static_cast<std::uint64_t>(out.requested),
                      .have = static_cast<std::uint64_t>(in.free)},
                     "less is free at the start than utilization asks for");
  }
  out.available = out.requested - in.non_kv - in.graphs - in.other;
  out.blocks = Blocks(out.available, in.block_bytes);
  return out;
}

}  // namespace holdfast
