#include "device/host/chunk_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

namespace {

absl::StatusOr<FileDescriptor> NewFile(const char* name) {
  FileDescriptor file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return OsError("host device", "memfd_create", errno);
  return file;
}

absl::Status SetSize(int file, std::uint64_t bytes) {
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) return absl::OkStatus();
  return OsError("chunk", "ftruncate", errno, bytes);
}

absl::Status NoSuchChunk() {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "chunk"},
                   "no such chunk, or already released");
}

}  // namespace

absl::StatusOr<ChunkStore> ChunkStore::Create(std::uint64_t capacity_bytes) {
  HOLDFAST_ASSIGN_OR_RETURN(FileDescriptor file, NewFile("holdfast-device"));
  return ChunkStore(std::move(file), capacity_bytes);
}

absl::StatusOr<ChunkHandle> ChunkStore::Allocate(std::uint64_t bytes, const ChunkOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(CheckRoom(bytes, "create chunk"));
  HostChunk chunk{.bytes = bytes};
  if (options.shareable) {
    HOLDFAST_ASSIGN_OR_RETURN(chunk.own_file, NewFile("holdfast-chunk"));
    HOLDFAST_RETURN_IF_ERROR(SetSize(chunk.own_file.get(), bytes));
  } else {
    HOLDFAST_RETURN_IF_ERROR(SetSize(file_.get(), end_offset_ + bytes));
    chunk.offset = end_offset_;
    end_offset_ += bytes;
  }
  used_bytes_ += bytes;
  return Add(std::move(chunk));
}

absl::StatusOr<FileDescriptor> ChunkStore::Export(ChunkHandle handle) const {
  const HostChunk* chunk = Find(handle);
  if (chunk == nullptr) return NoSuchChunk();
  if (!chunk->own_file) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = "chunk"},
                     "it was not made shareable");
  }
  FileDescriptor file(fcntl(chunk->own_file.get(), F_DUPFD_CLOEXEC, 0));
  if (!file) return OsError("chunk", "fcntl", errno);
  return file;
}

absl::StatusOr<ChunkHandle> ChunkStore::Import(int file, std::uint64_t bytes) {
  struct stat about = {};
  const bool known = fstat(file, &about) == 0;
  // Only a memfd has seals to ask for.
  if (!known || !S_ISREG(about.st_mode) || fcntl(file, F_GET_SEALS) < 0) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "imported chunk"},
                     "the file is no exported chunk");
  }
  if (static_cast<std::uint64_t>(about.st_size) != bytes) {
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = "imported chunk",
                      .need = static_cast<std::uint64_t>(about.st_size),
                      .have = bytes},
                     "the exported chunk has another size");
  }
  HostChunk chunk{.bytes = bytes, .imported = true};
  chunk.own_file = FileDescriptor(fcntl(file, F_DUPFD_CLOEXEC, 0));
  if (!chunk.own_file) return OsError("imported chunk", "fcntl", errno);
  imported_bytes_ += bytes;
  return Add(std::move(chunk));
}

ChunkHandle ChunkStore::Add(HostChunk chunk) {
  chunk.generation = NextGeneration();
  const ChunkHandle handle{++last_id_};
  chunks_.emplace(handle.id, std::move(chunk));
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

absl::Status ChunkStore::TakeForNeighbour(std::uint64_t bytes) {
  HOLDFAST_RETURN_IF_ERROR(CheckRoom(bytes, "neighbour"));
  neighbour_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status ChunkStore::GiveFromNeighbour(std::uint64_t bytes) {
  if (bytes > neighbour_bytes_) {
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = "neighbour",
                      .need = bytes,
                      .have = neighbour_bytes_},
                     "gives back more than it took");
  }
  neighbour_bytes_ -= bytes;
  return absl::OkStatus();
}

absl::Status ChunkStore::Release(ChunkHandle handle) {
  const auto chunk = chunks_.find(handle.id);
  if (chunk == chunks_.end() || chunk->second.released) return NoSuchChunk();
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
  if (!gone.own_file) {
    // Cannot fail on a memfd for a range inside the file; were it to, only pages would be held
    // longer: the range is never handed out again.
    fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(gone.offset), static_cast<off_t>(gone.bytes));
  }
  (gone.imported ? imported_bytes_ : used_bytes_) -= gone.bytes;
  chunks_.erase(chunk);
}

}  // namespace holdfast
