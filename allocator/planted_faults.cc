#include "allocator/planted_faults.h"

#include <cstring>
#include <utility>

#include "device/error.h"

namespace holdfast {

absl::Status PlantSwap(std::vector<CopyIn>& copies) {
  for (std::size_t a = 0; a < copies.size(); ++a) {
    for (std::size_t b = a + 1; b < copies.size(); ++b) {
      const std::uint64_t bytes = copies[a].chunk.kept.bytes;
      if (copies[b].chunk.kept.bytes != bytes) continue;
      if (std::memcmp(copies[a].from, copies[b].from, bytes) == 0) continue;
      std::swap(copies[a].from, copies[b].from);
      return absl::OkStatus();
    }
  }
  for (CopyIn& copy : copies) {
    if (copy.chunk.kept.bytes < 2 * kHashLeafBytes) continue;
    if (std::memcmp(copy.from, copy.from + kHashLeafBytes, kHashLeafBytes) == 0) continue;
    copy.cross_leaves = true;
    return absl::OkStatus();
  }
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "swap chunks"},
                   "no two kept pieces differ: the fault cannot be planted");
}

void PlantFlippedBit(Transition& t, const std::vector<CopyIn>& copies) {
  if (copies.empty()) return;
  t.backup(copies.front().chunk)->room.data()[0] ^= std::byte{1};
  // Once: a second flip would repair the first.
  t.faults.flip_bit = false;
  t.state.faults.flip_bit = false;
}

}  // namespace holdfast
