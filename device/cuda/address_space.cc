#include "device/cuda/address_space.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/str_format.h"
#include "device/bytes.h"

namespace holdfast {
namespace {

// The driver carves small reservations out of a pool of its own and ignores their hints. What is
// small depends on what was freed before: in a new process 16 MiB were moved and 32 MiB honoured,
// later 64 MiB were moved too (driver 580, H200). A hinted reservation asks for more and more, and
// tells the caller what it asked.
constexpr std::uint64_t kHintedBytes[] = {64 * kMiB, kGiB, 16 * kGiB};

// What a shareable chunk is exported as.
constexpr CUmemAllocationHandleType kHandleType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

std::string RangeText(AddressRange range) {
  return absl::StrFormat("0x%x + %s", range.base.value, FormatBytes(range.bytes));
}

absl::Status Invalid(const std::string& object, const std::string& message) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = object}, message);
}

CUmemAccess_flags AccessFlags(Access access) {
  switch (access) {
    case Access::kNone: return CU_MEM_ACCESS_FLAGS_PROT_NONE;
    case Access::kRead: return CU_MEM_ACCESS_FLAGS_PROT_READ;
    case Access::kReadWrite: return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

}  // namespace

AddressSpace::AddressSpace(const CudaContext* context) : context_(context) {}

AddressSpace::~AddressSpace() {
  const DriverTable& driver = context_->driver();
  // Errors here mean a lost context, whose memory goes with the process.
  for (const auto& [address, mapping] : mappings_) {
    static_cast<void>(driver.MemUnmap(address, mapping.bytes));
  }
  for (const auto& [id, chunk] : chunks_) {
    if (!chunk.released) static_cast<void>(driver.MemRelease(chunk.handle));
  }
  for (const auto& [address, reservation] : reservations_) {
    static_cast<void>(driver.MemAddressFree(address, reservation.driver_bytes));
  }
}

CUmemAllocationProp AddressSpace::ChunkProperties(bool shareable) const {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = shareable ? kHandleType : CU_MEM_HANDLE_TYPE_NONE;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = context_->device();
  properties.allocFlags.gpuDirectRDMACapable = 0;
  return properties;
}

absl::StatusOr<std::uint64_t> AddressSpace::Granularity() const {
  // One figure for all chunks. Shareable ones may ask for more, where they exist at all.
  std::size_t most = 0;
  for (const bool shareable : {false, true}) {
    const CUmemAllocationProp properties = ChunkProperties(shareable);
    std::size_t granularity = 0;
    const CUresult code = context_->driver().MemGetAllocationGranularity(
        &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (shareable && code != CUDA_SUCCESS) break;
    HOLDFAST_RETURN_IF_ERROR(
        ToStatus(code, "cuMemGetAllocationGranularity", {.object = context_->name()}));
    most = std::max(most, granularity);
  }
  return most;
}

absl::StatusOr<AddressRange> AddressSpace::Reserve(std::uint64_t bytes, DeviceAddress hint) {
  const std::lock_guard<std::mutex> change(changes_);
  std::vector<std::uint64_t> sizes = {bytes};
  if (hint) {
    std::copy_if(std::begin(kHintedBytes), std::end(kHintedBytes), std::back_inserter(sizes),
                 [bytes](std::uint64_t size) { return size > bytes; });
    if (bytes < kHintedBytes[0]) sizes.erase(sizes.begin());
  }
  const DriverTable& driver = context_->driver();
  CUdeviceptr base = 0;
  std::uint64_t held = 0;  // what the driver holds at `base`
  for (const std::uint64_t size : sizes) {
    CUdeviceptr got = 0;
    const absl::Status status =
        ToStatus(driver.MemAddressReserve(&got, size, /*alignment=*/0, hint.value, /*flags=*/0),
                 "cuMemAddressReserve",
                 {.object = RangeText({hint, bytes}),
                  .need = bytes,
                  .out_of_memory = ErrorKind::kAddressTaken});
    if (!status.ok()) {
      if (held != 0) break;  // somewhere else is better than nowhere
      return status;
    }
    if (held != 0) static_cast<void>(driver.MemAddressFree(base, held));
    base = got;
    held = size;
    if (!hint || got == hint.value) break;
  }
  const std::lock_guard<std::mutex> books(books_);
  reservations_[base] = {.bytes = bytes, .driver_bytes = held};
  return AddressRange{{base}, bytes};
}

absl::Status AddressSpace::Free(AddressRange range) {
  const std::lock_guard<std::mutex> change(changes_);
  const auto reservation = reservations_.find(range.base.value);
  if (reservation == reservations_.end() || reservation->second.bytes != range.bytes) {
    return Invalid(RangeText(range), "not a whole reservation");
  }
  if (OverlapsMapping(range)) return Invalid(RangeText(range), "something is mapped in it");
  HOLDFAST_RETURN_IF_ERROR(ToStatus(
      context_->driver().MemAddressFree(range.base.value, reservation->second.driver_bytes),
      "cuMemAddressFree", {.object = RangeText(range)}));
  const std::lock_guard<std::mutex> books(books_);
  reservations_.erase(reservation);
  return absl::OkStatus();
}

absl::StatusOr<ChunkHandle> AddressSpace::Create(std::uint64_t bytes, const ChunkOptions& options) {
  const CUmemAllocationProp properties = ChunkProperties(options.shareable);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult code = context_->driver().MemCreate(&handle, bytes, &properties, /*flags=*/0);
  if (code != CUDA_SUCCESS) {
    const std::uint64_t free = code == CUDA_ERROR_OUT_OF_MEMORY ? context_->FreeBytes() : 0;
    return ToStatus(code, "cuMemCreate", {.object = "chunk", .need = bytes, .have = free});
  }
  return Add({.handle = handle, .bytes = bytes, .shareable = options.shareable});
}

ChunkHandle AddressSpace::Add(const Chunk& chunk) {
  const std::lock_guard<std::mutex> change(changes_);
  const std::lock_guard<std::mutex> books(books_);
  const std::uint64_t id = next_chunk_++;
  chunks_[id] = chunk;
  (chunk.imported ? imported_bytes_ : own_bytes_) += chunk.bytes;
  return ChunkHandle{id};
}

absl::StatusOr<FileDescriptor> AddressSpace::Export(ChunkHandle handle) {
  const std::lock_guard<std::mutex> change(changes_);
  const auto chunk = chunks_.find(handle.id);
  if (chunk == chunks_.end() || chunk->second.released) return Invalid("chunk", "no such chunk");
  if (!chunk->second.shareable) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = "chunk"},
                     "it was not made shareable");
  }
  int file = -1;
  HOLDFAST_RETURN_IF_ERROR(ToStatus(context_->driver().MemExportToShareableHandle(
                                        &file, chunk->second.handle, kHandleType, /*flags=*/0),
                                    "cuMemExportToShareableHandle", {.object = "chunk"}));
  return FileDescriptor(file);
}

absl::StatusOr<ChunkHandle> AddressSpace::Import(int file, std::uint64_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  // The driver takes the number of the file as if it were a pointer, and does not keep it.
  void* const os_handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(file));
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(context_->driver().MemImportFromShareableHandle(&handle, os_handle, kHandleType),
               "cuMemImportFromShareableHandle", {.object = "imported chunk", .need = bytes}));
  return Add({.handle = handle, .bytes = bytes, .imported = true});
}

absl::Status AddressSpace::Release(ChunkHandle handle) {
  const std::lock_guard<std::mutex> change(changes_);
  const auto chunk = chunks_.find(handle.id);
  if (chunk == chunks_.end() || chunk->second.released) return Invalid("chunk", "no such chunk");
  HOLDFAST_RETURN_IF_ERROR(ToStatus(context_->driver().MemRelease(chunk->second.handle),
                                    "cuMemRelease", {.object = "chunk"}));
  const std::lock_guard<std::mutex> books(books_);
  chunk->second.released = true;
  DropIfUnused(chunk);
  return absl::OkStatus();
}

absl::Status AddressSpace::Map(DeviceAddress address, std::uint64_t bytes, ChunkHandle handle) {
  const AddressRange range{address, bytes};
  const std::lock_guard<std::mutex> change(changes_);
  const auto chunk = chunks_.find(handle.id);
  if (chunk == chunks_.end() || chunk->second.released) return Invalid("chunk", "no such chunk");
  if (chunk->second.bytes != bytes) {
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = RangeText(range),
                      .need = chunk->second.bytes,
                      .have = bytes},
                     "only a whole chunk can be mapped");
  }
  if (!InsideReservation(range)) return Invalid(RangeText(range), "not inside a reservation");
  if (OverlapsMapping(range)) return Invalid(RangeText(range), "already mapped");
  HOLDFAST_RETURN_IF_ERROR(ToStatus(context_->driver().MemMap(address.value, bytes, /*offset=*/0,
                                                              chunk->second.handle, /*flags=*/0),
                                    "cuMemMap", {.object = RangeText(range), .need = bytes}));
  const std::lock_guard<std::mutex> books(books_);
  mappings_[address.value] = {.bytes = bytes, .chunk = handle.id};
  ++chunk->second.mappings;
  return absl::OkStatus();
}

absl::Status AddressSpace::Unmap(AddressRange range) {
  const std::lock_guard<std::mutex> change(changes_);
  HOLDFAST_RETURN_IF_ERROR(CheckWholeMappings(range, "unmapped"));
  HOLDFAST_RETURN_IF_ERROR(ToStatus(context_->driver().MemUnmap(range.base.value, range.bytes),
                                    "cuMemUnmap", {.object = RangeText(range)}));
  const std::lock_guard<std::mutex> books(books_);
  const auto first = mappings_.find(range.base.value);
  const auto last = mappings_.lower_bound(range.end().value);
  for (auto mapping = first; mapping != last; ++mapping) {
    const auto chunk = chunks_.find(mapping->second.chunk);
    --chunk->second.mappings;
    DropIfUnused(chunk);
  }
  mappings_.erase(first, last);
  return absl::OkStatus();
}

absl::Status AddressSpace::SetAccess(AddressRange range, Access access) {
  CUmemAccessDesc description = {};
  description.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  description.location.id = context_->device();
  description.flags = AccessFlags(access);
  const std::lock_guard<std::mutex> change(changes_);
  HOLDFAST_RETURN_IF_ERROR(CheckWholeMappings(range, "given access"));
  HOLDFAST_RETURN_IF_ERROR(ToStatus(
      context_->driver().MemSetAccess(range.base.value, range.bytes, &description, /*count=*/1),
      "cuMemSetAccess", {.object = RangeText(range), .need = range.bytes}));
  const std::lock_guard<std::mutex> books(books_);
  const auto last = mappings_.lower_bound(range.end().value);
  for (auto mapping = mappings_.find(range.base.value); mapping != last; ++mapping) {
    mapping->second.access = access;
  }
  return absl::OkStatus();
}

AddressState AddressSpace::Query(DeviceAddress address) const {
  // The plural query answers zeros for what it does not know. Each slot is 8 bytes and zeroed, wide
  // enough for any of these attributes, whatever width the driver writes.
  enum { kMapped, kAccess, kType, kBlock, kBuffer, kRangeStart, kCount };
  std::array<CUpointer_attribute, kCount> attributes = {
      CU_POINTER_ATTRIBUTE_MAPPED,      CU_POINTER_ATTRIBUTE_ACCESS_FLAGS,
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID,
      CU_POINTER_ATTRIBUTE_BUFFER_ID,   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
  std::array<std::uint64_t, kCount> values = {};
  std::array<void*, kCount> slots;
  for (int i = 0; i < kCount; ++i) slots[i] = &values[i];
  if (context_->driver().PointerGetAttributes(kCount, attributes.data(), slots.data(),
                                              address.value) != CUDA_SUCCESS) {
    return {};
  }
  AddressState state;
  state.host = values[kType] == CU_MEMORYTYPE_HOST;
  state.mapped = values[kMapped] != 0 || state.host;
  // The start of a range describes the reservation, whether anything is mapped there or not.
  if (!state.mapped) return {.reserved = values[kRangeStart] != 0 || Reserved(address)};
  if (values[kAccess] == CU_MEM_ACCESS_FLAGS_PROT_READWRITE || state.host) {
    state.access = Access::kReadWrite;
  } else if (values[kAccess] == CU_MEM_ACCESS_FLAGS_PROT_READ) {
    state.access = Access::kRead;
  }
  // The block names the physical pages. Host memory may have none; its registration is as good.
  state.generation = values[kBlock] != 0 ? values[kBlock] : values[kBuffer];
  return state;
}

absl::Status AddressSpace::CheckAccess(AddressRange range, Access needed,
                                       const std::string& what) const {
  const std::lock_guard<std::mutex> books(books_);
  if (!InsideReservation({range.base, 1})) return absl::OkStatus();
  // Walk the mappings that cover the range; a gap or a lesser access ends it.
  std::uint64_t next = range.base.value;
  const std::uint64_t end = range.end().value;
  auto mapping = mappings_.upper_bound(next);
  if (mapping != mappings_.begin()) --mapping;
  for (; next < end; ++mapping) {
    if (mapping == mappings_.end() || mapping->first > next ||
        mapping->first + mapping->second.bytes <= next) {
      return Invalid(what, RangeText(range) + " is not all mapped");
    }
    if (mapping->second.access < needed) {
      return Invalid(
          what, RangeText(range) +
                    (mapping->second.access == Access::kNone ? " has no access" : " is read-only"));
    }
    next = mapping->first + mapping->second.bytes;
  }
  return absl::OkStatus();
}

bool AddressSpace::Reserved(DeviceAddress address) const {
  const std::lock_guard<std::mutex> books(books_);
  return InsideReservation({address, 1});
}

std::uint64_t AddressSpace::own_bytes() const {
  const std::lock_guard<std::mutex> books(books_);
  return own_bytes_;
}

std::uint64_t AddressSpace::imported_bytes() const {
  const std::lock_guard<std::mutex> books(books_);
  return imported_bytes_;
}

absl::Status AddressSpace::CheckWholeMappings(AddressRange range, const std::string& call) const {
  std::uint64_t next = range.base.value;
  const std::uint64_t end = range.end().value;
  for (auto mapping = mappings_.find(next); next < end; ++mapping) {
    if (mapping == mappings_.end() || mapping->first != next ||
        mapping->second.bytes > end - next) {
      return Invalid(RangeText(range), "only whole mappings can be " + call);
    }
    next += mapping->second.bytes;
  }
  return absl::OkStatus();
}

bool AddressSpace::InsideReservation(AddressRange range) const {
  auto after = reservations_.upper_bound(range.base.value);
  if (after == reservations_.begin()) return false;
  const auto& [base, reservation] = *std::prev(after);
  return range.end().value <= base + reservation.bytes;
}

bool AddressSpace::OverlapsMapping(AddressRange range) const {
  const auto after = mappings_.lower_bound(range.end().value);
  if (after == mappings_.begin()) return false;
  const auto& [base, mapping] = *std::prev(after);
  return base + mapping.bytes > range.base.value;
}

void AddressSpace::DropIfUnused(Chunks::iterator chunk) {
  if (!chunk->second.released || chunk->second.mappings != 0) return;
  (chunk->second.imported ? imported_bytes_ : own_bytes_) -= chunk->second.bytes;
  chunks_.erase(chunk);
}

}  // namespace holdfast
