#include "device/cuda/pinned_memory.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "device/bytes.h"
#include "device/cuda/cuda_error.h"

namespace holdfast {
namespace {

// Serials have this bit, so that they never equal the driver's own numbering of blocks.
constexpr std::uint64_t kSerialBit = std::uint64_t{1} << 63;

// What is kept after it was freed: blocks up to the first size, up to the second in all.
constexpr std::uint64_t kMaxIdleBlock = 2 * kMiB;
constexpr std::uint64_t kMaxIdleBytes = 64 * kMiB;

// What one thread faults in; more than this is shared between threads.
constexpr std::uint64_t kTouchShare = 64 * kMiB;
constexpr std::uint64_t kMaxTouchThreads = 8;

std::uint64_t PageBytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

std::uint64_t AddressOf(const std::byte* data) { return reinterpret_cast<std::uint64_t>(data); }

// Bytes the kernel says can be had without swapping; 0 if it does not say.
std::uint64_t AvailableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::uint64_t kib = 0;
  std::string rest_of_line;
  while (file >> key >> kib) {
    std::getline(file, rest_of_line);
    if (key == "MemAvailable:") return kib * kKiB;
  }
  return 0;
}

absl::Status OutOfMemory(std::uint64_t need, std::uint64_t have, const std::string& call,
                         int code) {
  return MakeError({.kind = ErrorKind::kOutOfHostMemory,
                    .object = "host buffer",
                    .need = need,
                    .have = have,
                    .call = call,
                    .code = code},
                   "no host memory");
}

// Writes to each page once. Fresh anonymous pages are zero.
void Touch(std::byte* data, std::uint64_t bytes, std::uint64_t page) {
  const auto touch = [page](std::byte* from, std::byte* end) {
    for (volatile std::byte* p = from; p < end; p += page) *p = std::byte{0};
  };
  const std::uint64_t threads =
      std::min<std::uint64_t>({kMaxTouchThreads, std::max(1u, std::thread::hardware_concurrency()),
                               (bytes + kTouchShare - 1) / kTouchShare});
  const std::uint64_t share = AlignUp((bytes + threads - 1) / threads, 2 * kMiB);
  std::vector<std::thread> helpers;
  for (std::uint64_t begin = share; begin < bytes; begin += share) {
    std::byte* const from = data + begin;
    std::byte* const end = data + std::min(begin + share, bytes);
    try {
      helpers.emplace_back(touch, from, end);
    } catch (const std::system_error&) {
      touch(from, end);  // no thread to be had: slower, not wrong
    }
  }
  touch(data, data + std::min(share, bytes));
  for (std::thread& helper : helpers) helper.join();
}

// Makes the pages reachable by the GPU at the address they have.
absl::Status Register(std::byte* data, std::uint64_t bytes, std::uint64_t available) {
  const CallContext context{.object = "host buffer",
                            .need = bytes,
                            .have = available,
                            .out_of_memory = ErrorKind::kOutOfHostMemory};
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
    static_cast<void>(munmap(data, bytes));
  }
}

absl::StatusOr<std::byte*> PinnedMemory::Allocate(std::uint64_t bytes) {
  const std::uint64_t page = PageBytes();
  // A large request the machine cannot meet is refused: touching it would end the process.
  const std::uint64_t available = bytes >= kTouchShare ? AvailableBytes() : 0;
  if (available != 0 && bytes > available) return OutOfMemory(bytes, available, "", 0);
  const std::uint64_t mapped_bytes = AlignUp(bytes, page);
  if (std::byte* const idle = TakeIdle(mapped_bytes, bytes); idle != nullptr) {
    std::memset(idle, 0, mapped_bytes);
    return idle;
  }

  void* const pages =
      mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return OutOfMemory(bytes, available, "mmap", errno);
  // Only advice: fewer, larger pages register faster.
  if (mapped_bytes >= 2 * kMiB) static_cast<void>(madvise(pages, mapped_bytes, MADV_HUGEPAGE));
  // A child process must not share them: after a copy on write the GPU would hold another page.
  static_cast<void>(madvise(pages, mapped_bytes, MADV_DONTFORK));
  std::byte* const data = static_cast<std::byte*>(pages);
  Touch(data, mapped_bytes, page);
  if (absl::Status status = Register(data, mapped_bytes, available); !status.ok()) {
    static_cast<void>(munmap(data, mapped_bytes));
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
  static_cast<void>(munmap(data, mapped_bytes));
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
