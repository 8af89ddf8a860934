// Anonymous host pages, there already when the call returns: what pinned and pageable buffers are
// made of.
#ifndef HOLDFAST_DEVICE_CUDA_HOST_PAGES_H_
#define HOLDFAST_DEVICE_CUDA_HOST_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace holdfast {

// `bytes` > 0 rounded up to whole pages.
std::uint64_t WholePages(std::uint64_t bytes);

// From here on a request is judged against ReadHostLimits, and its pages are touched by several
// threads.
inline constexpr std::uint64_t kLargeHostBytes = 64 * 1024 * 1024;

// WholePages(bytes) zeroed bytes, each page written once, huge pages where the system has them, not
// shared with child processes. Several threads touch a large request; all calls of the process
// together use no more helpers than make eight touching threads, however many callers there are.
// kOutOfHostMemory, before anything is touched, if the machine or a cgroup has not enough: touching
// more than there is would end the process.
absl::StatusOr<std::byte*> MapHostPages(std::uint64_t bytes);

// Gives them back.
void UnmapHostPages(std::byte* data, std::uint64_t bytes);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_HOST_PAGES_H_
