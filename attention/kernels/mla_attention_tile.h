// How the CUDA twin of mla_attention cuts its work: one block holds a few heads of one row and
// walks the keys tile by tile, so that a key read from memory once serves all heads of the block.
#ifndef HOLDFAST_ATTENTION_KERNELS_MLA_ATTENTION_TILE_H_
#define HOLDFAST_ATTENTION_KERNELS_MLA_ATTENTION_TILE_H_

#include <cstdint>

#include "attention/kernels/mla_attention.h"
#include "device/hash.h"  // HOLDFAST_HOST_DEVICE

namespace holdfast {

inline constexpr int kMlaHeads = 8;  // heads of a block: one warp scores one head
inline constexpr int kMlaKeys = 32;  // keys of a tile: one lane scores one key
inline constexpr int kMlaThreads = 32 * kMlaHeads;
inline constexpr int kMlaMaxLatent = 512;
inline constexpr int kMlaMaxRope = 64;
inline constexpr int kMlaMaxHeads = 128;

// Elements from one key to the next in shared memory: an odd number of 16-byte units, so that 8
// lanes that read the same column of 8 keys meet 8 different groups of banks.
HOLDFAST_HOST_DEVICE constexpr int MlaKeyStride(int width, int element_bytes) {
  return ((width * element_bytes / 16) | 1) * 16 / element_bytes;
}

// Shared memory of a block: q of its heads and one tile's weights as floats, each head's factor,
// the tile.
HOLDFAST_HOST_DEVICE constexpr int MlaSharedFloats(int width) {
  return kMlaHeads * width + kMlaKeys * kMlaHeads + kMlaHeads;
}
HOLDFAST_HOST_DEVICE constexpr int MlaSharedBytes(int width, int element_bytes) {
  return MlaSharedFloats(width) * 4 + kMlaKeys * MlaKeyStride(width, element_bytes) * element_bytes;
}

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_KERNELS_MLA_ATTENTION_TILE_H_
