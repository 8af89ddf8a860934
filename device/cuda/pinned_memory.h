// Pinned host memory: pages of our own, faulted in, then registered, so that the GPU reaches them
// at the same address. Much faster than asking CUDA for them (which zeroes and pins on one thread).
//
// Unregistering waits for every running kernel, so small blocks are not unregistered when they are
// freed but kept for the next request of their size, up to a bound. Large ones go at once.
#ifndef HOLDFAST_DEVICE_CUDA_PINNED_MEMORY_H_
#define HOLDFAST_DEVICE_CUDA_PINNED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"

namespace holdfast {

// Thread-safe. The context is current in every calling thread, and at destruction.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  // Gives idle blocks back; blocks in use stay, since somebody still points to them.
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // `bytes` > 0 zeroed bytes, page-aligned; kOutOfHostMemory. Does not wait for the GPU.
  absl::StatusOr<std::byte*> Allocate(std::uint64_t bytes);
  // Waits for running kernels if the block is large. The pages go even if the driver reports an
  // error.
  absl::Status Free(std::byte* data);

  // The state of an address in memory held here; nullopt elsewhere. Idle blocks are not mapped.
  std::optional<AddressState> Query(DeviceAddress address) const;

 private:
  struct Block {
    std::uint64_t mapped_bytes = 0;  // whole pages
    std::uint64_t bytes = 0;         // asked for; 0 if idle
    std::uint64_t generation = 0;    // of the present use
  };

  // An idle block of that many pages, now in use; null if there is none.
  std::byte* TakeIdle(std::uint64_t mapped_bytes, std::uint64_t bytes);

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::uint64_t, Block> blocks_;          // by first address
  std::multimap<std::uint64_t, std::byte*> idle_;  // by mapped bytes
  std::uint64_t idle_bytes_ = 0;
  std::uint64_t next_serial_ = 1;
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_PINNED_MEMORY_H_
