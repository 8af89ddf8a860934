#include "device/hash.h"

#include <array>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace holdfast {
namespace {

// keys[j][k]: a table, so that the inner loop is additions and multiplications only.
constexpr auto kKeys = [] {
  std::array<std::array<std::uint64_t, kHashStrandWords>, kHashLanes> keys{};
  for (unsigned j = 0; j < kHashLanes; ++j) {
    for (unsigned k = 0; k < kHashStrandWords; ++k) keys[j][k] = HashKey(j, k);
  }
  return keys;
}();

// Where unit `unit` of strand `c` lies in its tile.
constexpr unsigned UnitOffset(unsigned unit, unsigned c) {
  return unit * kHashRowBytes + c * kHashUnitBytes;
}

#if defined(__AVX2__)

// Sums strands c and c + 1, whose units are neighbours: words 2u and 2u + 1 of both at once.
void SumTwoStrands(const std::byte* tile, unsigned c, HashStrand& first, HashStrand& second) {
  __m256i sums[kHashLanes] = {};
  for (unsigned unit = 0; unit < kHashStrandUnits; ++unit) {
    const __m256i words =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tile + UnitOffset(unit, c)));
#pragma GCC unroll 4
    for (unsigned j = 0; j < kHashLanes; ++j) {
      const __m256i keys = _mm256_broadcastsi128_si256(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(&kKeys[j][2 * unit])));
      const __m256i both = _mm256_add_epi32(words, keys);
      const __m256i product = _mm256_mul_epu32(both, _mm256_srli_epi64(both, 32));
      sums[j] = _mm256_add_epi64(sums[j], product);
    }
  }
  for (unsigned j = 0; j < kHashLanes; ++j) {
    std::uint64_t of_word[4];
    std::memcpy(of_word, &sums[j], sizeof(of_word));
    first.lane[j] = of_word[0] + of_word[1];
    second.lane[j] = of_word[2] + of_word[3];
  }
}

#else

HashStrand SumStrand(const std::byte* tile, unsigned c) {
  HashStrand strand;
  for (unsigned unit = 0; unit < kHashStrandUnits; ++unit) {
    std::uint64_t word[2];
    std::memcpy(word, tile + UnitOffset(unit, c), kHashUnitBytes);
    for (unsigned j = 0; j < kHashLanes; ++j) {
      strand.lane[j] +=
          HashProduct(word[0], kKeys[j][2 * unit]) + HashProduct(word[1], kKeys[j][2 * unit + 1]);
    }
  }
  return strand;
}

void SumTwoStrands(const std::byte* tile, unsigned c, HashStrand& first, HashStrand& second) {
  first = SumStrand(tile, c);
  second = SumStrand(tile, c + 1);
}

#endif

// Adds the strands of tile `tile` at `bytes`, all kHashTileBytes of it.
void AddTile(Hash128& sum, std::uint64_t tile, const std::byte* bytes) {
  for (unsigned c = 0; c < kHashTileStrands; c += 2) {
    HashStrand first;
    HashStrand second;
    SumTwoStrands(bytes, c, first, second);
    HashAddStrand(sum, tile * kHashTileStrands + c, first);
    HashAddStrand(sum, tile * kHashTileStrands + c + 1, second);
  }
}

}  // namespace

Hash128 HashLeafOnHost(const void* data, std::uint64_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(data);
  Hash128 sum;
  const std::uint64_t tiles = bytes / kHashTileBytes;
  for (std::uint64_t tile = 0; tile < tiles; ++tile) {
    AddTile(sum, tile, begin + tile * kHashTileBytes);
  }
  if (const std::uint64_t tail = bytes % kHashTileBytes; tail != 0) {
    std::byte padded[kHashTileBytes] = {};
    std::memcpy(padded, begin + tiles * kHashTileBytes, tail);
    AddTile(sum, tiles, padded);
  }
  return HashFinish(sum, bytes);
}

}  // namespace holdfast
