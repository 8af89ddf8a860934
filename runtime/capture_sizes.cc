#include "runtime/capture_sizes.h"

#include <algorithm>
#include <numeric>

#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kName[] = "capture_sizes";

const KeyTable<CaptureSizeKeys>& Table() {
  using K = CaptureSizeKeys;
  static const KeyTable<K> table = {
      Required("max_num_seqs", &K::max_num_seqs, 1, kMostCount, "sequences decoded together (S)"),
      Count("num_speculative_tokens", &K::num_speculative_tokens, 0, 4096, "draft tokens (K)"),
      Count("max_num_batched_tokens", &K::max_num_batched_tokens, 1, kMostCount,
            "tokens of one pass (T)"),
      Count("most", &K::most, 1, kLargestBucket, "largest size worth a graph"),
      Count("sequence_parallel", &K::sequence_parallel, 1, 4096,
            "ranks that a pass's tokens are dealt to"),
  };
  return table;
}

absl::StatusOr<SizingResult> SizeCaptures(const CaptureSizeKeys& keys) {
  HOLDFAST_ASSIGN_OR_RETURN(const BucketList buckets, CaptureSizes(keys));
  const std::vector<int>& sizes = buckets.sizes();
  return SizingResult{
      .figures = {{.name = "count", .values = {static_cast<std::int64_t>(sizes.size())}},
                  {.name = "largest", .values = {buckets.largest()}},
                  {.name = "sizes", .values = {sizes.begin(), sizes.end()}, .is_list = true}}};
}

}  // namespace

absl::StatusOr<BucketList> CaptureSizes(const CaptureSizeKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kName, Table(), keys));
  const std::int64_t rows = keys.num_speculative_tokens + 1;
  const std::int64_t limit = std::min(
      {std::min(keys.max_num_seqs, keys.most) * rows * 2, keys.most, keys.max_num_batched_tokens});
  return BucketList::Default(static_cast<int>(limit),
                             static_cast<int>(std::lcm(rows, keys.sequence_parallel)));
}

SizingRule CaptureSizesRule() {
  return MakeRule(
      {.name = kName,
       .doc = "sizes that graphs are captured for",
       .formula = "1, 2, 4, then by 8 to 255, by 16 beyond, up to\n"
                  "min(S * (K + 1) * 2, most, T), which is one of them; with draft\n"
                  "tokens or sequence_parallel each is rounded up to a multiple of both,\n"
                  "and those beyond the limit are dropped.",
       .figures = {{"count", "how many sizes"},
                   {"largest", "the largest"},
                   {"sizes", "all of them, ascending"}}},
      Table(), &SizeCaptures);
}

}  // namespace holdfast
