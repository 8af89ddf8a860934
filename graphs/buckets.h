// Bucket lists: the sizes that are captured, and which of them serves a request.
#ifndef HOLDFAST_GRAPHS_BUCKETS_H_
#define HOLDFAST_GRAPHS_BUCKETS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast {

// The most rows or tokens one captured graph may serve: bounds the tables below.
inline constexpr int kLargestBucket = 1 << 20;

// Sorted, unique, positive sizes, none above the limit. A value type: once made it is valid.
class BucketList {
 public:
  // The field's rule (1, 2, 4, then steps of 8 to 255, of 16 beyond) cut at `limit`, with `limit`
  // itself always in. With a `multiple` above 1 (rows come in such lots: a token and its drafts)
  // each size is rounded up to it, and what is then above the limit is dropped. kInvalidArgument
  // unless 1 <= multiple <= limit <= kLargestBucket.
  static absl::StatusOr<BucketList> Default(int limit, int multiple = 1);
  // The same for an engine of at most `max_sequences` sequences that each bring 1 +
  // `speculative_tokens` tokens a step: up to twice a full step, but no more than 512 nor than
  // `max_tokens`; with speculation each size is rounded up to whole sequences, and what is then
  // above the maximum is dropped. kInvalidArgument naming the argument unless max_sequences >= 1,
  // speculative_tokens >= 0, max_tokens >= 1, and a bucket is left.
  static absl::StatusOr<BucketList> ForSequences(int max_sequences, int speculative_tokens,
                                                 int max_tokens);
  // The user's own list. kInvalidArgument naming the entry for an empty list, zero, negative or
  // repeated sizes, or one above `limit`. Order does not matter.
  static absl::StatusOr<BucketList> Of(std::vector<int> sizes, int limit);

  // The smallest bucket that holds n; nullopt if n < 1 or above the largest. O(1).
  std::optional<int> Fit(int n) const;
  const std::vector<int>& sizes() const { return sizes_; }  // ascending
  int largest() const { return sizes_.back(); }

 private:
  explicit BucketList(std::vector<int> ascending);

  std::vector<int> sizes_;
  std::vector<int> fit_;  // fit_[n] = bucket of n, for n in [0, largest]
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_BUCKETS_H_
