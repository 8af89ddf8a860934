// Which pages of the KV cache are free. Page 0 is the null page: pads and warm-up use it, no
// sequence owns it.
#ifndef HOLDFAST_RUNTIME_KV_PAGES_H_
#define HOLDFAST_RUNTIME_KV_PAGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast {

class KvPages {
 public:
  KvPages() = default;
  // `pages` in all, the null page among them.
  explicit KvPages(std::int32_t pages);

  // Takes `count` pages; kOutOfMemory with need and have in pages if there are not so many, and
  // takes none.
  absl::StatusOr<std::vector<std::int32_t>> Take(std::int32_t count);
  void Return(const std::vector<std::int32_t>& pages);

  std::int32_t total() const { return total_; }
  std::int32_t free() const { return static_cast<std::int32_t>(free_.size()); }

 private:
  std::int32_t total_ = 0;
  std::vector<std::int32_t> free_;  // taken from the back: lowest page first
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KV_PAGES_H_
