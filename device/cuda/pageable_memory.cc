#include "device/cuda/pageable_memory.h"

#include <iterator>

#include "device/cuda/host_pages.h"
#include "device/error.h"

namespace holdfast {
namespace {

DeviceAddress AddressOf(const std::byte* data) { return {reinterpret_cast<std::uint64_t>(data)}; }

}  // namespace

absl::StatusOr<std::byte*> PageableMemory::Allocate(std::uint64_t bytes) {
  HOLDFAST_ASSIGN_OR_RETURN(std::byte* const data, MapHostPages(bytes));
  const std::lock_guard<std::mutex> lock(mutex_);
  blocks_.emplace(AddressOf(data), bytes);
  return data;
}

absl::Status PageableMemory::Free(std::byte* data) {
  std::uint64_t bytes = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto block = blocks_.find(AddressOf(data));
    if (block == blocks_.end()) {
      return MakeError({.kind = ErrorKind::kInternal, .object = "host buffer"},
                       "not in use: freed twice?");
    }
    bytes = block->second;
    blocks_.erase(block);
  }
  UnmapHostPages(data, bytes);
  return absl::OkStatus();
}

bool PageableMemory::Holds(AddressRange range) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto after = blocks_.upper_bound(range.base);
  if (after == blocks_.begin()) return false;
  const auto& [base, bytes] = *std::prev(after);
  const std::uint64_t offset = range.base - base;
  return offset <= bytes && range.bytes <= bytes - offset;
}

}  // namespace holdfast
