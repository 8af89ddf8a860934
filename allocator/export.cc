#include "allocator/export.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/arena_layout.h"
#include "device/error.h"

namespace holdfast {
namespace {

// The group that holds the span. The caller holds the arena's transition_mutex().
const ArenaGroup* GroupOf(Arena& arena, const SpanInfo& span) {
  for (const ArenaGroup& group : arena.groups()) {
    if (group.extent.Contains(span.range.base)) return &group;
  }
  return nullptr;
}

absl::StatusOr<std::vector<ExportedPiece>> ExportPieces(Device& device, const ArenaGroup& group,
                                                        AddressRange span) {
  std::vector<ExportedPiece> pieces;
  for (const ArenaChunk& chunk : group.chunks) {
    if (chunk.range.end() <= span.base || chunk.range.base >= span.end()) continue;
    ExportedPiece piece{.range = chunk.range,
                        .generation = device.Query(chunk.range.base).generation};
    HOLDFAST_ASSIGN_OR_RETURN(piece.file, device.ExportChunk(chunk.chunk));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace

absl::StatusOr<SpanExport> Export(Arena& arena, SpanId span, ExportOptions options) {
  std::lock_guard<std::mutex> transition(arena.transition_mutex());
  const SpanInfo info = arena.span(span);
  HOLDFAST_RETURN_IF_ERROR(arena.CheckAccessible(span, 0, info.range.bytes, /*read=*/false));
  const ArenaGroup& group = *GroupOf(arena, info);
  if (!group.spec.shareable) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = info.spec.name},
                     absl::StrCat("group ", GroupName(group.spec),
                                  " is not shareable: its chunks were made for this process "
                                  "alone, and legacy IPC does not take them either"));
  }
  if (options.writable && group.sealed) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = info.spec.name},
                     absl::StrCat("group ", GroupName(group.spec), " is sealed: read-only"));
  }
  SpanExport exported{.span = span, .name = info.spec.name, .bytes = info.range.bytes};
  HOLDFAST_ASSIGN_OR_RETURN(exported.pieces, ExportPieces(arena.device(), group, info.range));
  exported.offset = info.range.base - exported.pieces.front().range.base;
  HOLDFAST_ASSIGN_OR_RETURN(
      exported.registration,
      arena.registrations().Add({.holder = std::move(options.holder),
                                 .kind = HolderKind::kExport,
                                 .spans = {span},
                                 .writes = options.writable,
                                 .before_unmap = std::move(options.before_unmap),
                                 .after_map = std::move(options.after_map)}));
  return exported;
}

absl::Status CheckCurrent(const Arena& arena, const SpanExport& exported) {
  for (const ExportedPiece& piece : exported.pieces) {
    const AddressState state = arena.device().Query(piece.range.base);
    if (state.mapped && state.generation == piece.generation) continue;
    return MakeError({.kind = ErrorKind::kStale, .object = exported.name},
                     state.mapped ? "its pages were replaced since the export"
                                  : "its pages are gone since the export");
  }
  return absl::OkStatus();
}

absl::Status EndExport(Arena& arena, const SpanExport& exported) {
  return Annotate(arena.registrations().Remove(exported.registration), exported.name);
}

}  // namespace holdfast
