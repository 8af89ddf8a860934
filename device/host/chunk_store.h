// The physical memory of a host device: chunks are ranges of one memfd. A shareable chunk has a
// memfd of its own, which is what an export hands out; an imported chunk is such a file of another
// device or process, whose pages are counted there.
//
// The file is sparse and a range of it is used once: a chunk's offset lies behind all earlier ones,
// so its pages were never written and read as zero, and no fragmentation can make a chunk fail that
// fits the capacity. Giving a chunk back punches a hole: its pages return to the system. Not
// thread-safe: HostMemory guards it.
#ifndef HOLDFAST_DEVICE_HOST_CHUNK_STORE_H_
#define HOLDFAST_DEVICE_HOST_CHUNK_STORE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"
#include "device/file_descriptor.h"

namespace holdfast {

// Where a chunk lies. Generations never repeat within the process, over all devices.
struct HostChunk {
  std::uint64_t offset = 0;  // in the common file; 0 in a file of its own
  std::uint64_t bytes = 0;
  std::uint64_t generation = 0;
  FileDescriptor own_file;
  bool imported = false;
  int mappings = 0;       // live ones
  bool released = false;  // the handle is gone; the pages go with the last mapping
};

// The next generation number; never 0, never repeated.
std::uint64_t NextGeneration();

class ChunkStore {
 public:
  static absl::StatusOr<ChunkStore> Create(std::uint64_t capacity_bytes);

  // kOutOfMemory beyond the capacity; kDriver if the file cannot grow.
  absl::StatusOr<ChunkHandle> Allocate(std::uint64_t bytes, const ChunkOptions& options);
  // The contracts of Device's methods of these names.
  absl::StatusOr<FileDescriptor> Export(ChunkHandle handle) const;
  absl::StatusOr<ChunkHandle> Import(int file, std::uint64_t bytes);
  // The handle is dead afterwards; the pages live on while mapped.
  absl::Status Release(ChunkHandle handle);
  // A chunk whose handle is alive; null otherwise.
  const HostChunk* Find(ChunkHandle handle) const;
  void AddMapping(ChunkHandle handle);
  void DropMapping(ChunkHandle handle);

  // Physical memory that is no chunk: what a driver would take for itself. kOutOfMemory.
  absl::Status TakeForDriver(std::uint64_t bytes, const std::string& what);
  void GiveFromDriver(std::uint64_t bytes) { driver_bytes_ -= bytes; }
  // The same for another process on the device: gone from the free bytes, in no figure of this one.
  absl::Status TakeForNeighbour(std::uint64_t bytes);
  absl::Status GiveFromNeighbour(std::uint64_t bytes);

  // The file that the chunk's pages are in.
  int FileOf(const HostChunk& chunk) const {
    return chunk.own_file ? chunk.own_file.get() : file_.get();
  }
  std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  std::uint64_t used_bytes() const { return used_bytes_; }
  std::uint64_t imported_bytes() const { return imported_bytes_; }
  std::uint64_t driver_bytes() const { return driver_bytes_; }
  std::uint64_t free_bytes() const {
    return capacity_bytes_ - used_bytes_ - driver_bytes_ - neighbour_bytes_;
  }

 private:
  ChunkStore(FileDescriptor file, std::uint64_t capacity_bytes)
      : file_(std::move(file)), capacity_bytes_(capacity_bytes) {}
  absl::Status CheckRoom(std::uint64_t bytes, const std::string& call) const;
  ChunkHandle Add(HostChunk chunk);
  void FreePagesIfUnused(std::map<std::uint64_t, HostChunk>::iterator chunk);

  FileDescriptor file_;
  std::uint64_t capacity_bytes_ = 0;
  std::uint64_t used_bytes_ = 0;  // chunks with pages: held or still mapped
  std::uint64_t imported_bytes_ = 0;
  std::uint64_t driver_bytes_ = 0;
  std::uint64_t neighbour_bytes_ = 0;
  std::uint64_t end_offset_ = 0;  // every offset below it has been used
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, HostChunk> chunks_;  // by handle id
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_CHUNK_STORE_H_
