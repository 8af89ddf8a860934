// Whether contents that came back are those that left, and which span and leaf are not. Private to
// allocator/.
#ifndef HOLDFAST_ALLOCATOR_LEAF_CHECK_H_
#define HOLDFAST_ALLOCATOR_LEAF_CHECK_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "allocator/arena.h"
#include "allocator/transition.h"

namespace holdfast {

// The first leaf whose hash in `now` differs from what the backup knows; -1 if there is none.
std::ptrdiff_t FirstDamagedLeaf(const Backup& backup, const Hash128* now);

// kMisplaced if `found`, the hash that leaf `leaf` of the chunk has, is that of another leaf among
// `all`: nothing was damaged, but pieces changed places. Else kCorrupted. Names span and leaf.
absl::Status DamagedLeaf(const Transition& t, const std::vector<KeptChunk>& all,
                         const KeptChunk& kept, std::size_t leaf, const Hash128& found);

// "leaf 3 of the chunk at 0x..., bytes 1 to 2 of group weights/immutable"
std::string LeafPlace(const KeptChunk& kept, const ArenaGroup& group, std::size_t leaf);
// The span at the leaf's first byte, else the first inside it.
std::string SpanOfLeaf(const Arena& arena, const KeptChunk& kept, std::size_t leaf);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_LEAF_CHECK_H_
