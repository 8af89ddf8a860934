// Windows, mappings and host buffers of a host device, and the rule that a window can be touched
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
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"
#include "device/host/chunk_store.h"

namespace holdfast {

inline constexpr std::uint64_t kHostGranularity = 2 * 1024 * 1024;

class HostMemory {
 public:
  // At most `pin_limit_bytes` of pinned buffers at once.
  HostMemory(ChunkStore chunks, std::uint64_t pin_limit_bytes)
      : chunks_(std::move(chunks)), pin_limit_bytes_(pin_limit_bytes) {}
  ~HostMemory();  // takes back whatever is still reserved
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // The contracts of Device's methods of the same names; sizes and alignments are checked there.
  absl::StatusOr<AddressRange> Reserve(std::uint64_t bytes, DeviceAddress hint);
  absl::Status Free(AddressRange range);
  absl::StatusOr<ChunkHandle> CreateChunk(std::uint64_t bytes, const ChunkOptions& options);
  absl::Status ReleaseChunk(ChunkHandle chunk);
  absl::StatusOr<FileDescriptor> ExportChunk(ChunkHandle chunk) const;
  absl::StatusOr<ChunkHandle> ImportChunk(int file, std::uint64_t bytes);
  absl::Status Map(DeviceAddress address, std::uint64_t bytes, ChunkHandle chunk);
  absl::Status Unmap(AddressRange range);
  absl::Status SetAccess(AddressRange range, Access access);
  AddressState Query(DeviceAddress address) const;
  MemoryUse Use() const;
  // Bytes that are no chunks, as ChunkStore counts them.
  absl::Status TakeForDriver(std::uint64_t bytes, const std::string& what);
  void GiveFromDriver(std::uint64_t bytes);
  absl::Status TakeForNeighbour(std::uint64_t bytes);
  absl::Status GiveFromNeighbour(std::uint64_t bytes);
  absl::StatusOr<std::byte*> AllocateBuffer(std::uint64_t bytes, HostMemoryKind kind);
  absl::Status FreeBuffer(std::byte* data);

  // OK if every byte is mapped with at least `access`; kInvalidArgument naming `what`.
  absl::Status CheckDevice(AddressRange range, Access access, const char* what) const;
  // OK if the range lies in one buffer, or in one pinned buffer.
  absl::Status CheckBuffer(AddressRange range, const char* what) const;
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
  struct Buffer {
    std::uint64_t bytes = 0;
    HostMemoryKind kind = HostMemoryKind::kPinned;
    std::uint64_t generation = 0;
  };
  using Mappings = std::map<DeviceAddress, Mapping>;

  // The buffer that holds the whole range; null if none does.
  const Buffer* BufferHolding(AddressRange range) const;
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
  const std::uint64_t pin_limit_bytes_;
  std::uint64_t pinned_bytes_ = 0;
  std::map<DeviceAddress, Buffer> buffers_;
  int executors_ = 0;  // the windows are open while it is not 0
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_HOST_MEMORY_H_
