#include "allocator/span_io.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "allocator/group_pages.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<SpanIo>> SpanIo::Create(Arena& arena, std::uint64_t buffer_bytes) {
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream,
                            arena.device().CreateStream(arena.name() + " span io"));
  HOLDFAST_ASSIGN_OR_RETURN(HostBuffer buffer, arena.device().AllocateHost(buffer_bytes));
  return std::unique_ptr<SpanIo>(new SpanIo(arena, std::move(stream), std::move(buffer)));
}

absl::Status SpanIo::Read(SpanId span, std::uint64_t offset, void* to, std::uint64_t bytes) {
  // Inside the gate before the look at the pages: what is there now stays until the copy is done.
  HOLDFAST_ASSIGN_OR_RETURN(const AdmissionGate::Pass pass, arena_.gate().Enter());
  HOLDFAST_RETURN_IF_ERROR(arena_.CheckAccessible(span, offset, bytes, /*read=*/true));
  std::lock_guard<std::mutex> lock(mutex_);
  return ReadPieces(arena_.range(span).base + offset, static_cast<std::byte*>(to), bytes);
}

absl::Status SpanIo::Write(SpanId span, std::uint64_t offset, const void* from,
                           std::uint64_t bytes) {
  HOLDFAST_ASSIGN_OR_RETURN(const AdmissionGate::Pass pass, arena_.gate().Enter());
  HOLDFAST_RETURN_IF_ERROR(arena_.CheckAccessible(span, offset, bytes, /*read=*/false));
  if (bytes == 0) return absl::OkStatus();
  const SpanInfo info = arena_.span(span);
  const DeviceAddress to = info.range.base + offset;
  // A group is sealed as a whole, so one look is enough.
  if (arena_.device().Query(to).access != Access::kReadWrite) {
    return MakeError({.kind = ErrorKind::kLocked, .object = info.spec.name},
                     "the span is sealed: unseal its tag first");
  }
  std::lock_guard<std::mutex> lock(mutex_);
  HOLDFAST_RETURN_IF_ERROR(WritePieces(to, static_cast<const std::byte*>(from), bytes));
  if (bytes == info.range.bytes) arena_.SetUndefined(span, false);
  return absl::OkStatus();
}

absl::Status SpanIo::ReadPieces(DeviceAddress from, std::byte* to, std::uint64_t bytes) {
  Device& device = arena_.device();
  for (std::uint64_t at = 0; at < bytes; at += buffer_.size()) {
    const std::uint64_t piece = std::min(buffer_.size(), bytes - at);
    absl::Status copied = device.CopyToHost(*stream_, buffer_.data(), from + at, piece);
    if (copied.ok()) copied = device.Synchronize(*stream_);
    if (!copied.ok()) {
      Settle(device, *stream_);  // no copy may outlive the pass
      return copied;
    }
    std::memcpy(to + at, buffer_.data(), piece);
  }
  return absl::OkStatus();
}

absl::Status SpanIo::WritePieces(DeviceAddress to, const std::byte* from, std::uint64_t bytes) {
  Device& device = arena_.device();
  for (std::uint64_t at = 0; at < bytes; at += buffer_.size()) {
    const std::uint64_t piece = std::min(buffer_.size(), bytes - at);
    std::memcpy(buffer_.data(), from + at, piece);
    absl::Status copied = device.CopyToDevice(*stream_, to + at, buffer_.data(), piece);
    if (copied.ok()) copied = device.Synchronize(*stream_);
    if (!copied.ok()) {
      Settle(device, *stream_);
      return copied;
    }
  }
  return absl::OkStatus();
}

}  // namespace holdfast
