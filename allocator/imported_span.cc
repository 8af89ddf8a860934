#include "allocator/imported_span.h"

#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

// For the end, where nobody can be told: a second attempt, then the process's end has to do.
template <typename Call>
void Twice(Call call) {
  if (!call().ok()) call().IgnoreError();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImportedSpan>> ImportedSpan::Open(Device& device,
                                                                 const ImportSpec& spec) {
  std::uint64_t total = 0;
  for (const ImportPiece& piece : spec.pieces) {
    HOLDFAST_ASSIGN_OR_RETURN(total, CheckedAdd(total, piece.bytes, spec.name));
    if (piece.file == nullptr) {
      return MakeError({.kind = ErrorKind::kInvalidArgument, .object = spec.name},
                       "a piece without a file");
    }
  }
  HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t end,
                            CheckedAdd(spec.offset, spec.bytes, spec.name));
  if (spec.bytes == 0 || end > total) {
    return MakeError(
        {.kind = ErrorKind::kInvalidArgument, .object = spec.name, .need = end, .have = total},
        "the span does not lie in its pieces");
  }
  std::unique_ptr<ImportedSpan> span(new ImportedSpan(device, spec.name));
  HOLDFAST_ASSIGN_OR_RETURN(span->reserved_, device.ReserveAddress(total, {}));
  span->range_ = {span->reserved_.base + spec.offset, spec.bytes};
  HOLDFAST_RETURN_IF_ERROR(Annotate(span->MapPieces(spec), "import of " + spec.name));
  return span;
}

absl::Status ImportedSpan::MapPieces(const ImportSpec& spec) {
  DeviceAddress next = reserved_.base;
  for (const ImportPiece& from : spec.pieces) {
    Piece piece{.range = {next, from.bytes}};
    HOLDFAST_ASSIGN_OR_RETURN(piece.chunk, device_.ImportChunk(*from.file, from.bytes));
    pieces_.push_back(piece);
    HOLDFAST_RETURN_IF_ERROR(device_.Map(next, from.bytes, piece.chunk));
    pieces_.back().mapped = true;
    next = next + from.bytes;
  }
  return device_.SetAccess(reserved_, spec.access);
}

ImportedSpan::~ImportedSpan() {
  for (const Piece& piece : pieces_) {
    if (piece.mapped) Twice([&] { return device_.Unmap(piece.range); });
    Twice([&] { return device_.ReleaseChunk(piece.chunk); });
  }
  if (reserved_.bytes > 0) Twice([&] { return device_.FreeAddress(reserved_); });
}

}  // namespace holdfast
