#include "device/host/chunk_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "device/host/os_error.h"

namespace holdfast {

std::uint64_t NextGeneration() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

absl::StatusOr<ChunkStore> ChunkStore::Create(std::uint64_t capacity_bytes) {
  const int file = memfd_create("holdfast-device", MFD_CLOEXEC);
  if (file < 0) return OsError("host device", "memfd_create", errno);
  return ChunkStore(file, capacity_bytes);
}

ChunkStore::ChunkStore(ChunkStore&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      capacity_bytes_(other.capacity_bytes_),
      used_bytes_(other.used_bytes_),
      driver_bytes_(other.driver_bytes_),
      end_offset_(other.end_offset_),
      last_id_(other.last_id_),
      chunks_(std::move(other.chunks_)) {}

ChunkStore::~ChunkStore() {
  if (file_ >= 0) close(file_);
}

absl::StatusOr<ChunkHandle> ChunkStore::Allocate(std::uint64_t bytes) {
  HOLDFAST_RETURN_IF_ERROR(CheckRoom(bytes, "create chunk"));
  const std::uint64_t offset = end_offset_;
  if (ftruncate(file_, static_cast<off_t>(offset + bytes)) != 0) {
    return OsError("chunk", "ftruncate", errno, bytes);
  }
  end_offset_ = offset + bytes;
  used_bytes_ += bytes;
  const ChunkHandle handle{++last_id_};
  chunks_.emplace(handle.id,
                  HostChunk{.offset = offset, .bytes = bytes, .generation = NextGeneration()});
  return handle;
}

absl::Status ChunkStore::CheckRoom(std::uint64_t bytes, const std::string& call) const {
  if (bytes <= free_bytes()) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kOutOfMemory,
                    .object = "host device",
                    .need = bytes,
                    .have = free_bytes(),
                    .call = call},
                   "not enough free memory");
}

absl::Status ChunkStore::TakeForDriver(std::uint64_t bytes, const std::string& what) {
  HOLDFAST_RETURN_IF_ERROR(CheckRoom(bytes, what));
  driver_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status ChunkStore::Release(ChunkHandle handle) {
  const auto chunk = chunks_.find(handle.id);
  if (chunk == chunks_.end() || chunk->second.released) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "chunk"},
                     "no such chunk, or already released");
  }
  chunk->second.released = true;
  FreePagesIfUnused(chunk);
  return absl::OkStatus();
}

const HostChunk* ChunkStore::Find(ChunkHandle handle) const {
  const auto chunk = chunks_.find(handle.id);
  if (chunk == chunks_.end() || chunk->second.released) return nullptr;
  return &chunk->second;
}

void ChunkStore::AddMapping(ChunkHandle handle) { ++chunks_.at(handle.id).mappings; }

void ChunkStore::DropMapping(ChunkHandle handle) {
  const auto chunk = chunks_.find(handle.id);
  --chunk->second.mappings;
  FreePagesIfUnused(chunk);
}

void ChunkStore::FreePagesIfUnused(std::map<std::uint64_t, HostChunk>::iterator chunk) {
  const HostChunk& gone = chunk->second;
  if (!gone.released || gone.mappings != 0) return;
  // Cannot fail on a memfd for a range inside the file; were it to, only pages would be held
  // longer: the range is never handed out again.
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(gone.offset),
            static_cast<off_t>(gone.bytes));
  used_bytes_ -= gone.bytes;
  chunks_.erase(chunk);
}

}  // namespace holdfast
