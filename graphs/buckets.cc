#include "graphs/buckets.h"

#include <algorithm>

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
  std::vector<int> sizes;
  const auto add = [&](int size) {
    const int whole = (size + multiple - 1) / multiple * multiple;
    if (whole <= limit && (sizes.empty() || whole > sizes.back())) sizes.push_back(whole);
  };
  for (int size : {1, 2, 4}) add(size);
  for (int size = 8; size <= limit; size += size < 256 ? 8 : 16) add(size);
  add(limit);
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
