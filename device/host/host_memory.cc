#include "device/host/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <string>

#include "device/bytes.h"
#include "device/host/os_error.h"
#include "device/host_limits.h"

namespace holdfast {
namespace {

void* Pointer(DeviceAddress address) { return address.As<void>(); }

int Protection(Access access) {
  switch (access) {
    case Access::kNone: return PROT_NONE;
    case Access::kRead: return PROT_READ;
    case Access::kReadWrite: return PROT_READ | PROT_WRITE;
  }
  return PROT_NONE;
}

// Address space without memory. `extra_flags`: MAP_FIXED to put it over something of ours.
void* MapNothing(void* at, std::uint64_t bytes, int extra_flags) {
  return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | extra_flags, -1,
              0);
}

absl::Status Invalid(const std::string& object, const std::string& message) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = object}, message);
}

std::uint64_t BufferExtent(std::uint64_t bytes) {
  return AlignUp(bytes, static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
}

}  // namespace

HostMemory::~HostMemory() {
  for (const auto& [base, bytes] : reservations_) munmap(Pointer(base), bytes);
  for (const auto& [base, buffer] : buffers_) munmap(Pointer(base), BufferExtent(buffer.bytes));
}

absl::StatusOr<AddressRange> HostMemory::Reserve(std::uint64_t bytes, DeviceAddress hint) {
  std::lock_guard<std::mutex> lock(mutex_);
  // Without MAP_FIXED the kernel honours a free hint and otherwise chooses, as the GPU's driver
  // does.
  void* got = MapNothing(Pointer(hint), bytes, 0);
  if (got == MAP_FAILED) return OsError("window", "mmap", errno, bytes);
  DeviceAddress base{reinterpret_cast<std::uint64_t>(got)};
  if (base.value % kHostGranularity != 0) {
    munmap(got, bytes);
    got = MapNothing(nullptr, bytes + kHostGranularity, 0);
    if (got == MAP_FAILED) return OsError("window", "mmap", errno, bytes);
    const DeviceAddress start{reinterpret_cast<std::uint64_t>(got)};
    base.value = AlignUp(start.value, kHostGranularity);
    const std::uint64_t before = base - start;
    if (before != 0) munmap(got, before);
    if (before != kHostGranularity) munmap(Pointer(base + bytes), kHostGranularity - before);
  }
  reservations_.emplace(base, bytes);
  return AddressRange{base, bytes};
}

absl::Status HostMemory::Free(AddressRange range) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto reservation = reservations_.find(range.base);
  if (reservation == reservations_.end() || reservation->second != range.bytes) {
    return Invalid("window", "not a whole reservation");
  }
  const auto first = mappings_.lower_bound(range.base);
  if (first != mappings_.end() && first->first < range.end()) {
    return Invalid("window", "something is still mapped in it");
  }
  if (munmap(Pointer(range.base), range.bytes) != 0) return OsError("window", "munmap", errno);
  reservations_.erase(reservation);
  return absl::OkStatus();
}

absl::StatusOr<ChunkHandle> HostMemory::CreateChunk(std::uint64_t bytes,
                                                    const ChunkOptions& options) {
  std::lock_guard<std::mutex> lock(mutex_);
  return chunks_.Allocate(bytes, options);
}

absl::StatusOr<FileDescriptor> HostMemory::ExportChunk(ChunkHandle chunk) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return chunks_.Export(chunk);
}

absl::StatusOr<ChunkHandle> HostMemory::ImportChunk(int file, std::uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  return chunks_.Import(file, bytes);
}

absl::Status HostMemory::ReleaseChunk(ChunkHandle chunk) {
  std::lock_guard<std::mutex> lock(mutex_);
  return chunks_.Release(chunk);
}

absl::Status HostMemory::Map(DeviceAddress address, std::uint64_t bytes, ChunkHandle handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const AddressRange range{address, bytes};
  const HostChunk* chunk = chunks_.Find(handle);
  if (chunk == nullptr) return Invalid("mapping", "no such chunk");
  if (chunk->bytes != bytes) {
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = "mapping",
                      .need = chunk->bytes,
                      .have = bytes},
                     "a chunk is mapped as a whole");
  }
  if (!InsideReservation(range)) return Invalid("mapping", "not inside a reservation");
  const auto next = mappings_.lower_bound(address);
  if (Covering(address) != mappings_.end() ||
      (next != mappings_.end() && next->first < range.end())) {
    return Invalid("mapping", "something is mapped there");
  }
  if (mmap(Pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, chunks_.FileOf(*chunk),
           static_cast<off_t>(chunk->offset)) == MAP_FAILED) {
    return OsError("mapping", "mmap", errno, bytes);
  }
  mappings_.emplace(address,
                    Mapping{.bytes = bytes, .chunk = handle, .generation = chunk->generation});
  chunks_.AddMapping(handle);
  return absl::OkStatus();
}

absl::Status HostMemory::Unmap(AddressRange range) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!HoldsWholeMappings(range, /*gaps_allowed=*/true)) {
    return Invalid("unmapping", "cuts a mapping in two");
  }
  if (!InsideReservation(range)) return Invalid("unmapping", "not inside a reservation");
  if (MapNothing(Pointer(range.base), range.bytes, MAP_FIXED) == MAP_FAILED) {
    return OsError("unmapping", "mmap", errno, range.bytes);
  }
  auto mapping = mappings_.lower_bound(range.base);
  while (mapping != mappings_.end() && mapping->first < range.end()) {
    chunks_.DropMapping(mapping->second.chunk);
    mapping = mappings_.erase(mapping);
  }
  return absl::OkStatus();
}

absl::Status HostMemory::SetAccess(AddressRange range, Access access) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!HoldsWholeMappings(range, /*gaps_allowed=*/false)) {
    return Invalid("access", "the range is not made of whole mappings");
  }
  if (executors_ > 0 && mprotect(Pointer(range.base), range.bytes, Protection(access)) != 0) {
    return OsError("access", "mprotect", errno);
  }
  for (auto it = mappings_.lower_bound(range.base);
       it != mappings_.end() && it->first < range.end(); ++it) {
    it->second.access = access;
  }
  return absl::OkStatus();
}

AddressState HostMemory::Query(DeviceAddress address) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (const auto mapping = Covering(address); mapping != mappings_.end()) {
    return {
        .mapped = true, .access = mapping->second.access, .generation = mapping->second.generation};
  }
  if (InsideReservation({address, 1})) return {.reserved = true};
  // Kernels and captured copies may not use pageable memory: it does not count as mapped.
  const Buffer* buffer = BufferHolding({address, 1});
  if (buffer == nullptr || buffer->kind == HostMemoryKind::kPageable) return {};
  return {
      .mapped = true, .host = true, .access = Access::kReadWrite, .generation = buffer->generation};
}

MemoryUse HostMemory::Use() const {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t used = chunks_.used_bytes();
  return {.own_bytes = used,
          .imported_bytes = chunks_.imported_bytes(),
          .process_bytes = used + chunks_.driver_bytes(),
          .free_bytes = chunks_.free_bytes()};
}

absl::Status HostMemory::TakeForDriver(std::uint64_t bytes, const std::string& what) {
  std::lock_guard<std::mutex> lock(mutex_);
  return chunks_.TakeForDriver(bytes, what);
}

void HostMemory::GiveFromDriver(std::uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  chunks_.GiveFromDriver(bytes);
}

absl::Status HostMemory::TakeForNeighbour(std::uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  return chunks_.TakeForNeighbour(bytes);
}

absl::Status HostMemory::GiveFromNeighbour(std::uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  return chunks_.GiveFromNeighbour(bytes);
}

absl::StatusOr<std::byte*> HostMemory::AllocateBuffer(std::uint64_t bytes, HostMemoryKind kind) {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool pinned = kind == HostMemoryKind::kPinned;
  if (pinned && bytes > pin_limit_bytes_ - pinned_bytes_) {
    return MakeError({.kind = ErrorKind::kOutOfHostMemory,
                      .object = "host buffer",
                      .need = bytes,
                      .have = pin_limit_bytes_ - pinned_bytes_,
                      .call = "pin"},
                     "the limit on pinned memory");
  }
  void* data = MAP_FAILED;
  if (bytes <= std::uint64_t{1} << 62) {
    data = mmap(nullptr, BufferExtent(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
  }
  if (data == MAP_FAILED) {
    return MakeError({.kind = ErrorKind::kOutOfHostMemory,
                      .object = "host buffer",
                      .need = bytes,
                      .have = ReadHostLimits().available_bytes(),
                      .call = "mmap",
                      .code = ENOMEM},
                     "no room for the buffer");
  }
  buffers_.emplace(DeviceAddress{reinterpret_cast<std::uint64_t>(data)},
                   Buffer{.bytes = bytes, .kind = kind, .generation = NextGeneration()});
  if (pinned) pinned_bytes_ += bytes;
  return static_cast<std::byte*>(data);
}

absl::Status HostMemory::FreeBuffer(std::byte* data) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto buffer = buffers_.find(DeviceAddress{reinterpret_cast<std::uint64_t>(data)});
  if (buffer == buffers_.end()) return Invalid("host buffer", "not a buffer of this device");
  if (munmap(data, BufferExtent(buffer->second.bytes)) != 0) {
    return OsError("host buffer", "munmap", errno);
  }
  if (buffer->second.kind == HostMemoryKind::kPinned) pinned_bytes_ -= buffer->second.bytes;
  buffers_.erase(buffer);
  return absl::OkStatus();
}

absl::Status HostMemory::CheckDevice(AddressRange range, Access access, const char* what) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto mapping = Covering(range.base);
  DeviceAddress reached = range.base;
  while (reached < range.end()) {
    if (mapping == mappings_.end() || mapping->first > reached) {
      return Invalid(what, "not in mapped device memory");
    }
    if (mapping->second.access < access) return Invalid(what, "the mapping's access forbids it");
    reached = mapping->first + mapping->second.bytes;
    ++mapping;
  }
  return absl::OkStatus();
}

absl::Status HostMemory::CheckBuffer(AddressRange range, const char* what) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (BufferHolding(range) != nullptr) return absl::OkStatus();
  return Invalid(what, "not in a host buffer of this device");
}

absl::Status HostMemory::CheckPinned(AddressRange range, const char* what) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const Buffer* buffer = BufferHolding(range);
  if (buffer != nullptr && buffer->kind == HostMemoryKind::kPinned) return absl::OkStatus();
  return Invalid(what, "not in a pinned host buffer of this device");
}

const HostMemory::Buffer* HostMemory::BufferHolding(AddressRange range) const {
  const auto after = buffers_.upper_bound(range.base);
  if (after == buffers_.begin()) return nullptr;
  const auto& [base, buffer] = *std::prev(after);
  const std::uint64_t offset = range.base - base;
  return offset <= buffer.bytes && range.bytes <= buffer.bytes - offset ? &buffer : nullptr;
}

void HostMemory::EnterExecutor() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (executors_++ == 0) ProtectAll(/*open=*/true);
}

void HostMemory::LeaveExecutor() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (--executors_ == 0) ProtectAll(/*open=*/false);
}

void HostMemory::ProtectAll(bool open) {
  // One call for each run of neighbours with the same access. A failure (only ENOMEM is possible)
  // leaves pages inaccessible that should be open, which shows as a lost device, or the reverse,
  // which harms nothing but the check this is for.
  for (auto it = mappings_.cbegin(); it != mappings_.cend();) {
    const DeviceAddress base = it->first;
    const Access access = it->second.access;
    DeviceAddress end = base;
    while (it != mappings_.cend() && it->first == end && it->second.access == access) {
      end = end + it->second.bytes;
      ++it;
    }
    if (access != Access::kNone) {
      mprotect(Pointer(base), end - base, open ? Protection(access) : PROT_NONE);
    }
  }
}

HostMemory::Mappings::const_iterator HostMemory::Covering(DeviceAddress address) const {
  const auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return mappings_.end();
  const auto mapping = std::prev(after);
  return address - mapping->first < mapping->second.bytes ? mapping : mappings_.end();
}

bool HostMemory::HoldsWholeMappings(AddressRange range, bool gaps_allowed) const {
  const auto covering = Covering(range.base);
  if (covering != mappings_.end() && covering->first != range.base) return false;
  DeviceAddress reached = range.base;
  for (auto it = mappings_.lower_bound(range.base);
       it != mappings_.end() && it->first < range.end(); ++it) {
    if (it->first != reached && !gaps_allowed) return false;
    reached = it->first + it->second.bytes;
  }
  return gaps_allowed ? reached <= range.end() : reached == range.end();
}

bool HostMemory::InsideReservation(AddressRange range) const {
  const auto after = reservations_.upper_bound(range.base);
  if (after == reservations_.begin()) return false;
  const auto& [base, bytes] = *std::prev(after);
  return range.end() <= base + bytes;
}

}  // namespace holdfast
