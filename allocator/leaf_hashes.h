// Leaf hashes of many ranges with few launches. Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_LEAF_HASHES_H_
#define HOLDFAST_ALLOCATOR_LEAF_HASHES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "device/device.h"

namespace holdfast {

// A range and the place of its first hash in the room that takes them.
struct HashPiece {
  AddressRange range;
  std::size_t first_leaf = 0;
};

// Enqueues the hashes of all pieces to `stream`, out[first_leaf + i] for leaf i of a piece. Pieces
// that follow one another in memory and in the room, at leaf boundaries, share one launch. Empty
// ones are passed over.
absl::Status LaunchHashes(Device& device, Stream& stream, const std::vector<HashPiece>& pieces,
                          Hash128* out);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_LEAF_HASHES_H_
