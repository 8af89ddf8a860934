// The leaf hash by which contents are compared across sleep: 128 bits, the same on host and GPU.
//
// A leaf is cut into tiles of 4 KiB, a tile into 32 strands: strand c holds the 16-byte units
// c, c + 32, ..., c + 224 of its tile, which is what one lane of a warp reads. A leaf that ends
// inside a tile is padded with zero bytes; its length enters at the end.
//
// 1. Each strand of 16 words is summed four times over, as NH of UMAC does (Black, Halevi,
//    Krawczyk, Krovetz, Rogaway, "UMAC: Fast and Secure Message Authentication", CRYPTO 1999):
//      s_j = sum over words w_k of (lo(w_k) + a_jk mod 2^32) * (hi(w_k) + b_jk mod 2^32) mod 2^64,
//    lo and hi the halves of a word, (a_jk, b_jk) the halves of HashKey(j, k).
// 2. The sums are mixed with the strand's number q = 32 * tile + c, two into each half:
//      t_0 = Mix((s_0 + rot32(s_1)) ^ (q + 1) * K_0), t_1 the same of s_2, s_3 and K_1.
// 3. The t of all strands are added up mod 2^64 and mixed with the leaf's length.
// Mix is the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014; constants of Stafford's
// variant 13), a bijection. Both sums may be taken in any order, so that any order of threads gives
// the same value.
//
// Why a change shows. One half of one word changed: lane j misses it only where the other half is
// -b_jk (or -a_jk); the keys of the four lanes differ, so that at most one lane of four can miss
// it. Any change within one strand: for keys drawn at random NH misses it with a chance of at most
// 2^-32 a lane; ours are fixed, which serves for contents made without regard to them (this is no
// defence against forgery). A changed t moves its sum, since Mix is a bijection, and changes in
// several strands cancel with a chance of 2^-64 a half. Keys that grow linearly with the position
// would be cheaper and miss balanced changes (+1, -1 here and -1, +1 there); hence step 2.
#ifndef HOLDFAST_DEVICE_HASH_H_
#define HOLDFAST_DEVICE_HASH_H_

#include <cstdint>

#if defined(__CUDACC__)
#define HOLDFAST_HOST_DEVICE __host__ __device__
#else
#define HOLDFAST_HOST_DEVICE
#endif

namespace holdfast {

inline constexpr std::uint64_t kHashLeafBytes = 2 * 1024 * 1024;

inline constexpr unsigned kHashUnitBytes = 16;    // two words
inline constexpr unsigned kHashTileStrands = 32;  // a warp
inline constexpr unsigned kHashStrandUnits = 8;
inline constexpr unsigned kHashStrandWords = 2 * kHashStrandUnits;
inline constexpr unsigned kHashRowBytes = kHashTileStrands * kHashUnitBytes;
inline constexpr unsigned kHashTileBytes = kHashStrandUnits * kHashRowBytes;
inline constexpr unsigned kHashLanes = 4;

struct Hash128 {
  std::uint64_t lo = 0, hi = 0;
  bool operator==(const Hash128&) const = default;
};

inline constexpr std::uint64_t kHashKeyLo = 0x9e3779b97f4a7c15ull;
inline constexpr std::uint64_t kHashKeyHi = 0xd1b54a32d192ed03ull;

HOLDFAST_HOST_DEVICE constexpr std::uint64_t HashMix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// (a, b) of word `k` of a strand in lane `j`, as low and high half.
HOLDFAST_HOST_DEVICE constexpr std::uint64_t HashKey(unsigned j, unsigned k) {
  return HashMix((j * kHashStrandWords + k + 1) * kHashKeyLo);
}

// What a word adds to a lane's sum.
HOLDFAST_HOST_DEVICE constexpr std::uint64_t HashProduct(std::uint64_t word, std::uint64_t key) {
  const std::uint32_t lo = static_cast<std::uint32_t>(word) + static_cast<std::uint32_t>(key);
  const std::uint32_t hi =
      static_cast<std::uint32_t>(word >> 32) + static_cast<std::uint32_t>(key >> 32);
  return static_cast<std::uint64_t>(lo) * hi;
}

// The sums of one strand.
struct HashStrand {
  std::uint64_t lane[kHashLanes] = {};
};

// Adds strand `index` of a leaf to the leaf's sum.
HOLDFAST_HOST_DEVICE constexpr void HashAddStrand(Hash128& sum, std::uint64_t index,
                                                  const HashStrand& s) {
  const std::uint64_t lo = s.lane[0] + (s.lane[1] << 32 | s.lane[1] >> 32);
  const std::uint64_t hi = s.lane[2] + (s.lane[3] << 32 | s.lane[3] >> 32);
  sum.lo += HashMix(lo ^ (index + 1) * kHashKeyLo);
  sum.hi += HashMix(hi ^ (index + 1) * kHashKeyHi);
}

HOLDFAST_HOST_DEVICE constexpr Hash128 HashFinish(Hash128 sum, std::uint64_t bytes) {
  return {HashMix(sum.lo ^ bytes), HashMix(sum.hi + bytes)};
}

// Hash of `bytes` bytes at `data` on the host, as one leaf of any size. No alignment is needed.
Hash128 HashLeafOnHost(const void* data, std::uint64_t bytes);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HASH_H_
