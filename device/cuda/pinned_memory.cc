#include "device/cuda/pinned_memory.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <iterator>

#include "device/bytes.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/host_pages.h"

namespace holdfast {
namespace {

// Serials have this bit, so that they never equal the driver's own numbering of blocks.
constexpr std::uint64_t kSerialBit = std::uint64_t{1} << 63;

// What is kept after it was freed: blocks up to the first size, up to the second in all.
constexpr std::uint64_t kMaxIdleBlock = 2 * kMiB;
constexpr std::uint64_t kMaxIdleBytes = 64 * kMiB;

std::uint64_t AddressOf(const std::byte* data) { return reinterpret_cast<std::uint64_t>(data); }

// Makes the pages reachable by the GPU at the address they have. This is what judges memory locks:
// the limit the system states is not always the one the driver is held to.
absl::Status Register(std::byte* data, std::uint64_t bytes) {
  const CallContext context{
      .object = "host buffer", .need = bytes, .out_of_memory = ErrorKind::kOutOfHostMemory};
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
               "cudaHostRegister", context));
  void* on_device = nullptr;
  absl::Status status = ToStatus(cudaHostGetDevicePointer(&on_device, data, /*flags=*/0),
                                 "cudaHostGetDevicePointer", context);
  if (status.ok() && on_device != data) {
    status = MakeError({.kind = ErrorKind::kUnsupported, .object = "host buffer"},
                       "this GPU sees registered host memory at another address than the host");
  }
  if (!status.ok()) static_cast<void>(cudaHostUnregister(data));
  return status;
}

}  // namespace

PinnedMemory::~PinnedMemory() {
  for (const auto& [bytes, data] : idle_) {
    static_cast<void>(cudaHostUnregister(data));
    UnmapHostPages(data, bytes);
  }
}

absl::StatusOr<std::byte*> PinnedMemory::Allocate(std::uint64_t bytes) {
  const std::uint64_t mapped_bytes = WholePages(bytes);
  if (std::byte* const idle = TakeIdle(mapped_bytes, bytes); idle != nullptr) {
    std::memset(idle, 0, mapped_bytes);
    return idle;
  }
  // The slow part, without the lock: several threads do it side by side.
  HOLDFAST_ASSIGN_OR_RETURN(std::byte* const data, MapHostPages(bytes));
  if (absl::Status status = Register(data, mapped_bytes); !status.ok()) {
    UnmapHostPages(data, mapped_bytes);
    return status;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  blocks_[AddressOf(data)] = {
      .mapped_bytes = mapped_bytes, .bytes = bytes, .generation = kSerialBit | next_serial_++};
  return data;
}

std::byte* PinnedMemory::TakeIdle(std::uint64_t mapped_bytes, std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto idle = idle_.find(mapped_bytes);
  if (idle == idle_.end()) return nullptr;
  std::byte* const data = idle->second;
  idle_.erase(idle);
  idle_bytes_ -= mapped_bytes;
  Block& block = blocks_.at(AddressOf(data));
  block.bytes = bytes;
  block.generation = kSerialBit | next_serial_++;
  return data;
}

absl::Status PinnedMemory::Free(std::byte* data) {
  std::uint64_t mapped_bytes = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto block = blocks_.find(AddressOf(data));
    if (block == blocks_.end() || block->second.bytes == 0) {
      return MakeError({.kind = ErrorKind::kInternal, .object = "host buffer"},
                       "not in use: freed twice?");
    }
    mapped_bytes = block->second.mapped_bytes;
    if (mapped_bytes <= kMaxIdleBlock && idle_bytes_ + mapped_bytes <= kMaxIdleBytes) {
      block->second.bytes = 0;
      idle_.emplace(mapped_bytes, data);
      idle_bytes_ += mapped_bytes;
      return absl::OkStatus();
    }
    blocks_.erase(block);
  }
  const absl::Status status =
      ToStatus(cudaHostUnregister(data), "cudaHostUnregister", {.object = "host buffer"});
  UnmapHostPages(data, mapped_bytes);
  return status;
}

std::optional<AddressState> PinnedMemory::Query(DeviceAddress address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto after = blocks_.upper_bound(address.value);
  if (after == blocks_.begin()) return std::nullopt;
  const auto& [base, block] = *std::prev(after);
  const std::uint64_t offset = address.value - base;
  if (offset >= block.mapped_bytes) return std::nullopt;
  if (offset >= block.bytes) return AddressState{};
  return AddressState{
      .mapped = true, .host = true, .access = Access::kReadWrite, .generation = block.generation};
}

}  // namespace holdfast
