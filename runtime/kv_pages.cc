#include "runtime/kv_pages.h"

#include <algorithm>
#include <functional>

#include "device/error.h"

namespace holdfast {

KvPages::KvPages(std::int32_t pages) : total_(pages) {
  for (std::int32_t page = pages - 1; page >= 1; --page) free_.push_back(page);
}

absl::StatusOr<std::vector<std::int32_t>> KvPages::Take(std::int32_t count) {
  if (count > free()) {
    return MakeError({.kind = ErrorKind::kOutOfMemory,
                      .object = "KV pages",
                      .need = static_cast<std::uint64_t>(count),
                      .have = static_cast<std::uint64_t>(free())},
                     "not enough free pages for the sequence");
  }
  std::vector<std::int32_t> pages(free_.end() - count, free_.end());
  free_.resize(free_.size() - static_cast<std::size_t>(count));
  std::reverse(pages.begin(), pages.end());
  return pages;
}

void KvPages::Return(const std::vector<std::int32_t>& pages) {
  free_.insert(free_.end(), pages.begin(), pages.end());
  std::sort(free_.begin(), free_.end(), std::greater<>());
}

}  // namespace holdfast
