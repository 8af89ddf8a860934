// How large chunks should be.
#ifndef HOLDFAST_ALLOCATOR_CHUNK_SIZES_H_
#define HOLDFAST_ALLOCATOR_CHUNK_SIZES_H_

#include <cstdint>

namespace holdfast {

// Chunks of kept groups are as small as a pipeline of copies wants them. Dropped groups have
// nothing to copy: a few large chunks, this many times as large, cost fewer driver calls.
inline constexpr std::uint64_t kDroppedChunkFactor = 4;

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_CHUNK_SIZES_H_
