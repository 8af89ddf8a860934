#include "graphs/buckets.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {
namespace {

absl::Status Invalid(const std::string& object, const std::string& message) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = object}, message);
}

absl::Status CheckLimit(int limit) {
  if (limit < 1) return Invalid("bucket limit", absl::StrCat(limit, " is not positive"));
  if (limit > kLargestBucket) {
    return Invalid("bucket limit", absl::StrCat(limit, " is above ", kLargestBucket));
  }
  return absl::OkStatus();
}

// The field's sizes that are no larger than `limit`, ascending.
std::vector<int> RuleSizes(int limit) {
  std::vector<int> sizes;
  for (int size : {1, 2, 4}) {
    if (size <= limit) sizes.push_back(size);
  }
  for (int size = 8; size <= limit; size += size < 256 ? 8 : 16) sizes.push_back(size);
  return sizes;
}

// Rounded up to whole lots of `multiple` rows; what is then above `limit` or there already is left
// out.
std::vector<int> InLots(const std::vector<int>& sizes, std::int64_t multiple, int limit) {
  std::vector<int> lots;
  for (const int size : sizes) {
    const std::int64_t whole = (size + multiple - 1) / multiple * multiple;
    if (whole <= limit && (lots.empty() || lots.back() != whole)) {
      lots.push_back(static_cast<int>(whole));
    }
  }
  return lots;
}

}  // namespace

BucketList::BucketList(std::vector<int> ascending) : sizes_(std::move(ascending)) {
  fit_.resize(static_cast<std::size_t>(sizes_.back()) + 1);
  std::size_t next = 0;
  for (std::size_t n = 0; n < fit_.size(); ++n) {
    if (static_cast<int>(n) > sizes_[next]) ++next;
    fit_[n] = sizes_[next];
  }
}

absl::StatusOr<BucketList> BucketList::Default(int limit, int multiple) {
  HOLDFAST_RETURN_IF_ERROR(CheckLimit(limit));
  if (multiple < 1 || multiple > limit) {
    return Invalid("bucket multiple", absl::StrCat(multiple, " is not in [1, ", limit, "]"));
  }
  std::vector<int> sizes = InLots(RuleSizes(limit), multiple, limit);
  if (limit % multiple == 0 && sizes.back() != limit) sizes.push_back(limit);
  return BucketList(std::move(sizes));
}

absl::StatusOr<BucketList> BucketList::ForSequences(int max_sequences, int speculative_tokens,
                                                    int max_tokens) {
  constexpr int kMost = 512;
  if (max_sequences < 1) return Invalid("max_sequences", absl::StrCat(max_sequences, " < 1"));
  if (speculative_tokens < 0) {
    return Invalid("speculative_tokens", absl::StrCat(speculative_tokens, " is negative"));
  }
  if (max_tokens < 1) return Invalid("max_tokens", absl::StrCat(max_tokens, " < 1"));
  const std::int64_t tokens = std::int64_t{1} + speculative_tokens;  // of a sequence, a step
  const auto limit =
      static_cast<int>(std::min<std::int64_t>({2 * tokens * max_sequences, kMost, max_tokens}));
  std::vector<int> sizes = InLots(RuleSizes(limit), tokens, limit);
  if (sizes.empty()) {
    return Invalid("max_tokens",
                   absl::StrCat("one sequence of ", tokens, " tokens is above ", limit));
  }
  return BucketList(std::move(sizes));
}

absl::StatusOr<BucketList> BucketList::Of(std::vector<int> sizes, int limit) {
  HOLDFAST_RETURN_IF_ERROR(CheckLimit(limit));
  if (sizes.empty()) return Invalid("bucket list", "empty");
  std::sort(sizes.begin(), sizes.end());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string name = absl::StrCat("bucket ", sizes[i]);
    if (sizes[i] < 1) return Invalid(name, "not positive");
    if (sizes[i] > limit) return Invalid(name, absl::StrCat("above the limit of ", limit));
    if (i > 0 && sizes[i] == sizes[i - 1]) return Invalid(name, "listed twice");
  }
  return BucketList(std::move(sizes));
}

std::optional<int> BucketList::Fit(int n) const {
  if (n < 1 || n > largest()) return std::nullopt;
  return fit_[static_cast<std::size_t>(n)];
}

}  // namespace holdfast
