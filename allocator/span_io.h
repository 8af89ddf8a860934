// Reads and writes of span contents from the host, checked: nobody reads what is asleep or
// undefined, nobody writes what is sealed, and no page goes meanwhile.
#ifndef HOLDFAST_ALLOCATOR_SPAN_IO_H_
#define HOLDFAST_ALLOCATOR_SPAN_IO_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "device/bytes.h"
#include "device/device.h"

namespace holdfast {

// Copies through one pinned buffer, piece by piece, on a stream of its own: what other streams were
// given before is not waited for. A sleep waits for a copy under way, as for a replay. Thread-safe;
// one copy at a time.
class SpanIo {
 public:
  // The arena must outlive it. kOutOfHostMemory, kInvalidArgument (no buffer bytes).
  static absl::StatusOr<std::unique_ptr<SpanIo>> Create(Arena& arena,
                                                        std::uint64_t buffer_bytes = 4 * kMiB);

  // [offset, offset + bytes) of the span to `to`, any host memory. kInvalidArgument (no such span,
  // outside it, or not committed: need, have), kAsleep, kUndefinedContents, kBusy (a transition has
  // begun).
  absl::Status Read(SpanId span, std::uint64_t offset, void* to, std::uint64_t bytes);
  // The same from `from`; kLocked where the span is sealed. A write of a whole span defines its
  // contents. On a driver's error a part may have been written.
  absl::Status Write(SpanId span, std::uint64_t offset, const void* from, std::uint64_t bytes);

 private:
  SpanIo(Arena& arena, std::unique_ptr<Stream> stream, HostBuffer buffer)
      : arena_(arena), stream_(std::move(stream)), buffer_(std::move(buffer)) {}

  absl::Status ReadPieces(DeviceAddress from, std::byte* to, std::uint64_t bytes);
  absl::Status WritePieces(DeviceAddress to, const std::byte* from, std::uint64_t bytes);

  Arena& arena_;
  std::mutex mutex_;  // guards both below
  std::unique_ptr<Stream> stream_;
  HostBuffer buffer_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_SPAN_IO_H_
