// Windows, mappings and pinned buffers of a host device, and the rule that a window can be touched
// only while an executor (a stream's worker) runs.
//
// While no executor runs, every page of every window is PROT_NONE: a host thread that follows a
// device pointer faults, as it does on a machine with a GPU. The first executor to enter opens each
// mapping to its own access, the last to leave closes them all. Thread-safe.
#ifndef HOLDFAST_DEVICE_HOST_HOST_MEMORY_H_
#define HOLDFAST_DEVICE_HOST_HOST_MEMORY_H_

#include <cstdint>
#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"
#include "device/host/chunk_store.h"

namespace holdfast {

inline constexpr std::uint64_t kHostGranularity = 2 * 1024 * 1024;

class HostMemory {
 public:
  explicit HostMemory(ChunkStore chunks) : chunks_(std::move(chunks)) {}
  ~HostMemory();  // takes back whatever is still reserved
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // The contracts of Device's methods of the same names; sizes and alignments are checked there.
  absl::StatusOr<AddressRange> Reserve(std::uint64_t bytes, DeviceAddress hint);
  absl::Status Free(AddressRange range);
  absl::StatusOr<ChunkHandle> CreateChunk(std::uint64_t bytes);
  absl::Status ReleaseChunk(ChunkHandle chunk);
  absl::Status Map(DeviceAddress address, std::uint64_t bytes, ChunkHandle chunk);
  absl::Status Unmap(AddressRange range);
  absl::Status SetAccess(AddressRange range, Access access);
  AddressState Query(DeviceAddress address) const;
  MemoryUse Use() const;
  absl::StatusOr<std::byte*> AllocatePinned(std::uint64_t bytes);
  absl::Status FreePinned(std::byte* data);

  // OK if every byte is mapped with at least `access`; kInvalidArgument naming `what`.
  absl::Status CheckDevice(AddressRange range, Access access, const char* what) const;
  // OK if the range lies in one pinned buffer.
  absl::Status CheckPinned(AddressRange range, const char* what) const;

  void EnterExecutor();
  void LeaveExecutor();

 private:
  struct Mapping {
    std::uint64_t bytes = 0;
    ChunkHandle chunk;
    Access access = Access::kNone;
    std::uint64_t generation = 0;
  };
  struct Pinned {
    std::uint64_t bytes = 0;
    std::uint64_t generation = 0;
  };
  using Mappings = std::map<DeviceAddress, Mapping>;

  // The mapping or end() that covers `address`.
  Mappings::const_iterator Covering(DeviceAddress address) const;
  // True if the range begins and ends where mappings do; `gaps_allowed` if it may hold unmapped
  // parts.
  bool HoldsWholeMappings(AddressRange range, bool gaps_allowed) const;
  bool InsideReservation(AddressRange range) const;
  // Sets the protection of all mappings: to their access, or to none.
  void ProtectAll(bool open);

  mutable std::mutex mutex_;
  ChunkStore chunks_;
  std::map<DeviceAddress, std::uint64_t> reservations_;  // base -> bytes
  Mappings mappings_;
  std::map<DeviceAddress, Pinned> pinned_;
  int executors_ = 0;  // the windows are open while it is not 0
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_HOST_MEMORY_H_
