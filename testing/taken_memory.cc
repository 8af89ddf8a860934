#include "testing/taken_memory.h"

#include <algorithm>

#include "device/bytes.h"

namespace holdfast::testing {
namespace {

constexpr std::uint64_t kPieceBytes = 256 * kMiB;
constexpr std::uint64_t kSampleBytes = 64;
constexpr std::uint8_t kPattern = 0xA5;

}  // namespace

absl::Status TakenMemory::Take(std::uint64_t bytes) {
  HOLDFAST_ASSIGN_OR_RETURN(window_, device_.ReserveAddress(bytes, {}));
  for (std::uint64_t at = 0; at < bytes; at += kPieceBytes) {
    const AddressRange range{window_.base + at, std::min(kPieceBytes, bytes - at)};
    HOLDFAST_ASSIGN_OR_RETURN(const ChunkHandle chunk, device_.CreateChunk(range.bytes));
    pieces_.push_back({{}, chunk});
    HOLDFAST_RETURN_IF_ERROR(device_.Map(range.base, range.bytes, chunk));
    pieces_.back().range = range;
    HOLDFAST_RETURN_IF_ERROR(device_.SetAccess(range, Access::kReadWrite));
  }
  return absl::OkStatus();
}

absl::Status TakenMemory::WriteOver(Stream& stream, const Piece& piece, HostBuffer& sample) {
  HOLDFAST_RETURN_IF_ERROR(device_.Fill(stream, piece.range.base, kPattern, piece.range.bytes));
  HOLDFAST_RETURN_IF_ERROR(
      device_.CopyToHost(stream, sample.data(),
                         piece.range.base + (piece.range.bytes - sample.size()), sample.size()));
  HOLDFAST_RETURN_IF_ERROR(device_.Synchronize(stream));
  const bool holds = std::all_of(sample.data(), sample.data() + sample.size(),
                                 [](std::byte b) { return b == std::byte{kPattern}; });
  if (holds) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kCorrupted, .object = "scribbled memory"},
                   "does not hold what was written");
}

absl::Status TakenMemory::TakeAndWrite(Stream& stream, std::uint64_t bytes) {
  bytes = AlignDown(bytes, device_.info().granularity);
  if (bytes == 0) return absl::OkStatus();
  HOLDFAST_ASSIGN_OR_RETURN(HostBuffer sample, device_.AllocateHost(kSampleBytes));
  absl::Status status = Take(bytes);
  for (const Piece& piece : pieces_) {
    if (status.ok()) status = WriteOver(stream, piece, sample);
  }
  if (!status.ok()) status.Update(Release());
  return status;
}

absl::StatusOr<std::uint64_t> TakenMemory::TakeAllBut(std::uint64_t slack) {
  std::uint64_t taken = 0;
  for (const std::uint64_t bytes : {kGiB, 64 * kMiB, device_.info().granularity}) {
    for (;;) {
      HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse memory, device_.Memory());
      if (memory.free_bytes < slack + bytes) break;
      const absl::StatusOr<ChunkHandle> chunk = device_.CreateChunk(bytes);
      if (IsErrorKind(chunk.status(), ErrorKind::kOutOfMemory)) break;
      if (!chunk.ok()) return chunk.status();
      pieces_.push_back({{}, *chunk});
      taken += bytes;
    }
  }
  return taken;
}

absl::Status TakenMemory::Release() {
  absl::Status status;
  for (const Piece& piece : pieces_) {
    if (piece.range.bytes > 0) status.Update(device_.Unmap(piece.range));
    status.Update(device_.ReleaseChunk(piece.chunk));
  }
  pieces_.clear();
  if (window_.bytes > 0) status.Update(device_.FreeAddress(window_));
  window_ = {};
  return status;
}

}  // namespace holdfast::testing
