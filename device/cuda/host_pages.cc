#include "device/cuda/host_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>
#include <vector>

#include "device/bytes.h"
#include "device/error.h"
#include "device/host_limits.h"

namespace holdfast {
namespace {

// More threads than this fault pages in no faster: they wait for the kernel's locks.
constexpr int kMaxTouchThreads = 8;
// What a thread touches before it looks whether it is still wanted.
constexpr std::uint64_t kTouchPiece = 16 * kMiB;

// Threads inside TouchPages in the whole process.
std::atomic<int> touching{0};

class CountedTouch {
 public:
  CountedTouch() { touching.fetch_add(1); }
  ~CountedTouch() { touching.fetch_sub(1); }
};

std::uint64_t PageBytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

// Writes to each page once; fresh anonymous pages are zero. The caller works to the end; helpers
// leave as soon as other calls have brought enough threads of their own.
void TouchPages(std::byte* data, std::uint64_t bytes) {
  const std::uint64_t page = PageBytes();
  std::atomic<std::uint64_t> next{0};
  const auto touch_piece = [&] {
    const std::uint64_t begin = next.fetch_add(kTouchPiece);
    if (begin >= bytes) return false;
    const std::uint64_t end = std::min(begin + kTouchPiece, bytes);
    for (std::uint64_t at = begin; at < end; at += page) {
      *const_cast<volatile std::byte*>(data + at) = std::byte{0};
    }
    return true;
  };
  const auto help = [&] {
    const CountedTouch counted;
    while (touching.load() <= kMaxTouchThreads && touch_piece()) {
    }
  };

  const CountedTouch counted;
  const int wanted = static_cast<int>(
      std::min<std::uint64_t>({kMaxTouchThreads, std::max(1u, std::thread::hardware_concurrency()),
                               (bytes + kLargeHostBytes - 1) / kLargeHostBytes}));
  const int helpers = std::min(wanted - 1, kMaxTouchThreads - touching.load());
  std::vector<std::thread> threads;
  try {
    for (int i = 0; i < helpers; ++i) threads.emplace_back(help);
  } catch (const std::system_error&) {
    // No thread to be had: slower, not wrong.
  }
  while (touch_piece()) {
  }
  for (std::thread& thread : threads) thread.join();
}

absl::Status OutOfMemory(const ErrorInfo& info) {
  ErrorInfo full = info;
  full.kind = ErrorKind::kOutOfHostMemory;
  full.object = "host buffer";
  return MakeError(full, "no host memory");
}

}  // namespace

std::uint64_t WholePages(std::uint64_t bytes) { return AlignUp(bytes, PageBytes()); }

absl::StatusOr<std::byte*> MapHostPages(std::uint64_t bytes) {
  if (bytes >= kLargeHostBytes) {
    const HostLimits limits = ReadHostLimits();
    if (bytes > limits.available_bytes()) {
      return OutOfMemory(
          {.need = bytes, .have = limits.available_bytes(), .call = limits.binding()});
    }
  }
  const std::uint64_t mapped_bytes = WholePages(bytes);
  void* const pages =
      mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return OutOfMemory({.need = bytes, .call = "mmap", .code = errno});
  // Only advice: fewer, larger pages register faster.
  if (mapped_bytes >= 2 * kMiB) static_cast<void>(madvise(pages, mapped_bytes, MADV_HUGEPAGE));
  // A child process must not share them: after a copy on write the GPU would hold another page.
  static_cast<void>(madvise(pages, mapped_bytes, MADV_DONTFORK));
  TouchPages(static_cast<std::byte*>(pages), mapped_bytes);
  return static_cast<std::byte*>(pages);
}

void UnmapHostPages(std::byte* data, std::uint64_t bytes) {
  static_cast<void>(munmap(data, WholePages(bytes)));
}

}  // namespace holdfast
