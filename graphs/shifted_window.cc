#include "graphs/shifted_window.h"

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<ShiftedWindow>> ShiftedWindow::Create(Arena& arena,
                                                                     std::uint64_t shift) {
  Device& device = arena.device();
  const AddressRange window = arena.window();
  const ErrorInfo wrong{.kind = ErrorKind::kInvalidArgument, .object = "shift"};
  if (shift % device.info().granularity != 0) {
    return MakeError(wrong, absl::StrCat(shift, " is no multiple of the granularity"));
  }
  if (shift < window.bytes)
    return MakeError(wrong, absl::StrCat(shift, " is less than the window"));

  const DeviceAddress wanted = window.base + shift;
  HOLDFAST_ASSIGN_OR_RETURN(const AddressRange got, device.ReserveAddress(window.bytes, wanted));
  std::unique_ptr<ShiftedWindow> shifted(new ShiftedWindow(device, got));
  if (got.base != wanted) {
    return MakeError(
        {.kind = ErrorKind::kAddressTaken, .object = "shifted window", .need = window.bytes},
        absl::StrCat("no room at 0x", absl::Hex(wanted.value)));
  }
  for (const ArenaGroup& group : arena.groups()) {
    const Access access = group.sealed ? Access::kRead : Access::kReadWrite;
    for (const ArenaChunk& chunk : group.chunks) {
      if (!chunk.chunk) continue;  // asleep
      HOLDFAST_RETURN_IF_ERROR(
          shifted->MapChunk({chunk.range.base + shift, chunk.range.bytes}, chunk.chunk, access));
    }
  }
  return shifted;
}

absl::Status ShiftedWindow::MapChunk(AddressRange range, ChunkHandle chunk, Access access) {
  HOLDFAST_RETURN_IF_ERROR(device_.Map(range.base, range.bytes, chunk));
  mapped_.push_back(range);
  return device_.SetAccess(range, access);
}

absl::Status ShiftedWindow::Close() {
  while (!mapped_.empty()) {
    HOLDFAST_RETURN_IF_ERROR(device_.Unmap(mapped_.back()));
    mapped_.pop_back();
  }
  if (window_.bytes == 0) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(device_.FreeAddress(window_));
  window_ = {};
  return absl::OkStatus();
}

}  // namespace holdfast
