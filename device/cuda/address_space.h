// The GPU's virtual memory: reservations, physical chunks, mappings, access.
//
// The driver forgives what must not be forgiven (unmapping nothing succeeds) and counts nothing, so
// the books are kept here: requests that name no whole mappings are refused before the driver sees
// them.
#ifndef HOLDFAST_DEVICE_CUDA_ADDRESS_SPACE_H_
#define HOLDFAST_DEVICE_CUDA_ADDRESS_SPACE_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_context.h"
#include "device/device.h"

namespace holdfast {

// Thread-safe; CheckAccess and Query never wait for a change under way. The context outlives it and
// is current in every calling thread.
class AddressSpace {
 public:
  explicit AddressSpace(const CudaContext* context);
  // Unmaps, releases and frees whatever is left. No work may be running on it.
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // What chunk sizes and mapped addresses must be multiples of.
  absl::StatusOr<std::uint64_t> Granularity() const;

  // The contracts are Device's.
  absl::StatusOr<AddressRange> Reserve(std::uint64_t bytes, DeviceAddress hint);
  absl::Status Free(AddressRange range);
  absl::StatusOr<ChunkHandle> Create(std::uint64_t bytes, const ChunkOptions& options);
  absl::Status Release(ChunkHandle chunk);
  absl::StatusOr<FileDescriptor> Export(ChunkHandle chunk);
  absl::StatusOr<ChunkHandle> Import(int file, std::uint64_t bytes);
  absl::Status Map(DeviceAddress address, std::uint64_t bytes, ChunkHandle chunk);
  absl::Status Unmap(AddressRange range);
  absl::Status SetAccess(AddressRange range, Access access);
  AddressState Query(DeviceAddress address) const;

  // kInvalidArgument if `range` begins in one of our reservations and not all of it may be used so:
  // work that did it anyway would lose the context. Memory of others is left to the driver. `what`
  // names it.
  absl::Status CheckAccess(AddressRange range, Access needed, const std::string& what) const;

  // Physical bytes held: chunks not released, and released ones that are still mapped. Made here,
  // or elsewhere.
  std::uint64_t own_bytes() const;
  std::uint64_t imported_bytes() const;

 private:
  struct Chunk {
    CUmemGenericAllocationHandle handle = 0;
    std::uint64_t bytes = 0;
    std::uint64_t mappings = 0;
    bool released = false;
    bool shareable = false;
    bool imported = false;
  };
  struct Reservation {
    std::uint64_t bytes = 0;         // as asked for
    std::uint64_t driver_bytes = 0;  // as the driver holds it
  };
  struct Mapping {
    std::uint64_t bytes = 0;
    std::uint64_t chunk = 0;
    Access access = Access::kNone;
  };
  using Chunks = std::map<std::uint64_t, Chunk>;

  CUmemAllocationProp ChunkProperties(bool shareable) const;
  ChunkHandle Add(const Chunk& chunk);

  // These read the books; either lock is held.
  // OK if `range` is exactly covered by whole mappings, without a gap; `call` names the request.
  absl::Status CheckWholeMappings(AddressRange range, const std::string& call) const;
  bool InsideReservation(AddressRange range) const;
  bool OverlapsMapping(AddressRange range) const;
  // Forgets a chunk that is released and mapped nowhere. Both locks are held.
  void DropIfUnused(Chunks::iterator chunk);

  const CudaContext* context_;
  // Held through a change: from the check of the books over the driver's call to the entry in the
  // books. Taken before books_.
  std::mutex changes_;
  // Held, briefly, while the books are written, or read by somebody who does not hold changes_.
  mutable std::mutex books_;
  // The books. Keys: chunk id (the driver's handle may be 0, ours may not); first address.
  Chunks chunks_;
  std::map<std::uint64_t, Mapping> mappings_;
  std::map<std::uint64_t, Reservation> reservations_;
  std::uint64_t next_chunk_ = 1;
  std::uint64_t own_bytes_ = 0;
  std::uint64_t imported_bytes_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_ADDRESS_SPACE_H_
