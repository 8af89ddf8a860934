// The sizes graphs are captured for, from the limits of a run.
#ifndef HOLDFAST_RUNTIME_CAPTURE_SIZES_H_
#define HOLDFAST_RUNTIME_CAPTURE_SIZES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "attention/sizing/rule.h"
#include "graphs/buckets.h"

namespace holdfast {

struct CaptureSizeKeys {
  std::int64_t max_num_seqs = 0, num_speculative_tokens = 0;
  std::int64_t max_num_batched_tokens = kLargestBucket;
  std::int64_t most = 512;             // larger graphs bring nothing
  std::int64_t sequence_parallel = 1;  // ranks that a pass's tokens are dealt to
};
// BucketList::Default up to min(max_num_seqs * (K + 1) * 2, most, max_num_batched_tokens), in
// multiples of K + 1 and of sequence_parallel. kInvalidArgument if there is none.
absl::StatusOr<BucketList> CaptureSizes(const CaptureSizeKeys& keys);
SizingRule CaptureSizesRule();

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_CAPTURE_SIZES_H_
