#include "runtime/kv_pages.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostNamed = 8;  // pages a refusal names

absl::Status RefuseHeld(const std::vector<std::int32_t>& held, std::int32_t pages) {
  const std::vector<std::int32_t> named(
      held.begin(), held.begin() + static_cast<std::ptrdiff_t>(std::min(held.size(), kMostNamed)));
  return MakeError(
      {.kind = ErrorKind::kHeld,
       .object = "KV pages",
       .need = static_cast<std::uint64_t>(held.back()) + 1,
       .have = static_cast<std::uint64_t>(pages)},
      absl::StrCat(held.size(), " of the pages to go are in use: ", absl::StrJoin(named, ", "),
                   held.size() > named.size() ? ", ..." : ""));
}

}  // namespace

absl::StatusOr<std::vector<std::int32_t>> KvPages::Take(std::int32_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto left = static_cast<std::int32_t>(free_.size());
  if (count > left) {
    return MakeError({.kind = ErrorKind::kOutOfMemory,
                      .object = "KV pages",
                      .need = static_cast<std::uint64_t>(count),
                      .have = static_cast<std::uint64_t>(left)},
                     "not enough free pages for the sequence");
  }
  std::vector<std::int32_t> pages(free_.end() - count, free_.end());
  free_.resize(free_.size() - static_cast<std::size_t>(count));
  std::reverse(pages.begin(), pages.end());
  return pages;
}

void KvPages::Return(const std::vector<std::int32_t>& pages) {
  std::lock_guard<std::mutex> lock(mutex_);
  free_.insert(free_.end(), pages.begin(), pages.end());
  std::sort(free_.begin(), free_.end(), std::greater<>());
}

void KvPages::Grow(std::int32_t pages) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (pages <= total_) return;
  std::vector<std::int32_t> added;
  for (std::int32_t page = pages - 1; page >= std::max(total_, 1); --page) added.push_back(page);
  free_.insert(free_.begin(), added.begin(), added.end());
  total_ = pages;
}

absl::Status KvPages::Shrink(std::int32_t pages) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (pages >= total_) return absl::OkStatus();
  const auto first_kept =
      std::find_if(free_.begin(), free_.end(), [pages](std::int32_t page) { return page < pages; });
  std::vector<std::int32_t> held;
  auto next = first_kept;  // walks the free pages to go upwards
  for (std::int32_t page = std::max(pages, 1); page < total_; ++page) {
    if (next != free_.begin() && *std::prev(next) == page) {
      --next;
    } else {
      held.push_back(page);
    }
  }
  if (!held.empty()) return RefuseHeld(held, pages);
  free_.erase(free_.begin(), first_kept);
  total_ = pages;
  return absl::OkStatus();
}

std::int32_t KvPages::total() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return total_;
}

std::int32_t KvPages::free() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<std::int32_t>(free_.size());
}

}  // namespace holdfast
