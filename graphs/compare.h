// Tier 2 of the audit: comparing two readings of one step, word by word. DiffGraphs (audit.h) asks
// for equality; the shifted capture asks that exactly the arena's words moved, which proves what
// the aligned walk of tier 1 can only guess, and finds the pointers it cannot see.
#ifndef HOLDFAST_GRAPHS_COMPARE_H_
#define HOLDFAST_GRAPHS_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/arena.h"
#include "device/device.h"
#include "device/node_view.h"
#include "graphs/audit.h"

namespace holdfast {

// A pointer into the arena that is not an aligned word (a packed struct's, or of a parameter that
// tier 1 passes over), found because it moved by exactly the shift.
struct PackedPointer {
  std::uint32_t node = 0, parameter = 0, byte = 0;
  std::uint64_t word = 0;
  std::string span;
  std::uint64_t offset = 0;
};

struct ShiftReport {
  std::uint64_t moved = 0;            // words that moved by exactly the shift, packed ones included
  std::uint64_t tensor_maps = 0;      // opaque maps that the driver confirmed to have moved so
  std::vector<PackedPointer> packed;  // new to the audit: their spans belong into the manifest
  std::vector<std::string> problems;  // words in the arena that stayed, words changed otherwise
};

// `base` was captured in place and audited, `shifted` with every span `shift` bytes higher. Each
// word that the audit found to point into a span must have moved by exactly `shift`; everything
// else must be equal, or be a packed pointer into the arena that moved so, or part of a tensor map
// that `device` says has moved so. Each problem names node, word and, for a span's pointer, the
// span. Without an arena no packed pointer is recognised; it shows as words changed otherwise.
ShiftReport CompareShifted(const GraphView& base, const AuditReport& audit,
                           const GraphView& shifted, std::uint64_t shift, const Arena* arena,
                           const Device* device);

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_COMPARE_H_
