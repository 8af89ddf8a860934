// Spans for other processes: exported as files of their pages, and recognised as stale once those
// pages were replaced.
//
// An address is fixed, the pages behind it are not: every wake makes new ones. An importer that
// goes on using the old ones reads what nobody writes any more, and keeps their memory from the
// device. So an export carries the generation of each piece, and is registered as a holder of its
// span: with hooks that make the importer let go and import anew, or without, and then no sleep
// takes the pages.
#ifndef HOLDFAST_ALLOCATOR_EXPORT_H_
#define HOLDFAST_ALLOCATOR_EXPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/registrations.h"
#include "device/device.h"

namespace holdfast {

// One whole chunk: less cannot be mapped.
struct ExportedPiece {
  AddressRange range;            // where the exporter has it
  std::uint64_t generation = 0;  // of its physical pages
  FileDescriptor file;           // for the importer; any way of passing one will do
};

struct SpanExport {
  SpanId span;
  std::string name;
  std::uint64_t bytes = 0;            // of the span
  std::uint64_t offset = 0;           // where the span begins in the first piece
  std::vector<ExportedPiece> pieces;  // in address order, one after the other
  RegistrationId registration;
};

struct ExportOptions {
  std::string holder;     // who gets it, as refusals name it
  bool writable = false;  // the importer may write: sealed contents are then compared at sleep
  // Both or neither, as for any holder (registrations.h).
  HolderHook before_unmap;
  HolderHook after_map;
};

// Not from a hook: it waits for transitions. kInvalidArgument (no such span, not committed, no
// holder's name), kAsleep, kUnsupported: its group is not shareable, or a writable export of a
// sealed group. On failure nothing is registered.
absl::StatusOr<SpanExport> Export(Arena& arena, SpanId span, ExportOptions options);
// OK while every piece is still what stands behind the span; else kStale naming it. Never waits for
// a transition.
absl::Status CheckCurrent(const Arena& arena, const SpanExport& exported);
// The importer is known to have let go: the span has one holder less. kNotFound the second time.
absl::Status EndExport(Arena& arena, const SpanExport& exported);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_EXPORT_H_
