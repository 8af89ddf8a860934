// Which pages of the KV cache are free. Page 0 is the null page: pads and warm-up use it, no
// sequence owns it.
#ifndef HOLDFAST_RUNTIME_KV_PAGES_H_
#define HOLDFAST_RUNTIME_KV_PAGES_H_

#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace holdfast {

// Thread-safe.
class KvPages {
 public:
  KvPages() = default;
  // `pages` in all, the null page among them.
  explicit KvPages(std::int32_t pages) { Grow(pages); }

  // Takes `count` pages; kOutOfMemory with need and have in pages if there are not so many, and
  // takes none.
  absl::StatusOr<std::vector<std::int32_t>> Take(std::int32_t count);
  void Return(const std::vector<std::int32_t>& pages);

  // To `pages` in all; new ones are free. Nothing if there are as many already.
  void Grow(std::int32_t pages);
  // To `pages` in all, the last ones going. kHeld naming those of them that sequences have (need:
  // the fewest pages that keep them, have: `pages`); then nothing changes.
  absl::Status Shrink(std::int32_t pages);

  std::int32_t total() const;
  std::int32_t free() const;

 private:
  mutable std::mutex mutex_;  // guards all below
  std::int32_t total_ = 0;
  std::vector<std::int32_t> free_;  // descending, taken from the back: lowest page first
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KV_PAGES_H_
