// Pageable host memory: pages of our own that only copies use, and only at once. Known by address,
// so that a copy can tell them from memory that may vanish.
#ifndef HOLDFAST_DEVICE_CUDA_PAGEABLE_MEMORY_H_
#define HOLDFAST_DEVICE_CUDA_PAGEABLE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/address.h"

namespace holdfast {

// Thread-safe. Blocks in use at destruction stay, since somebody still points to them.
class PageableMemory {
 public:
  PageableMemory() = default;
  PageableMemory(const PageableMemory&) = delete;
  PageableMemory& operator=(const PageableMemory&) = delete;

  // `bytes` > 0 zeroed bytes, page-aligned; kOutOfHostMemory.
  absl::StatusOr<std::byte*> Allocate(std::uint64_t bytes);
  absl::Status Free(std::byte* data);

  // True if the range lies in one block.
  bool Holds(AddressRange range) const;

 private:
  mutable std::mutex mutex_;
  std::map<DeviceAddress, std::uint64_t> blocks_;  // bytes by first address; guarded by mutex_
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_PAGEABLE_MEMORY_H_
