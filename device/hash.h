// The leaf hash by which contents are compared across sleep: 128 bits, the same on host and GPU.
//
// For 8-byte little-endian words w[0..n) of a leaf (a tail is padded with zero bytes; its length
// enters the end): lane j sums Mix(w[i] ^ (i + 1) * K_j) mod 2^64, then mixes in the byte count. A
// sum, so that any order of threads gives the same value; each word is mixed with its position, so
// that moved words show. Mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014; constants of
// Stafford's variant 13).
#ifndef HOLDFAST_DEVICE_HASH_H_
#define HOLDFAST_DEVICE_HASH_H_

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define HOLDFAST_HOST_DEVICE __host__ __device__
#else
#define HOLDFAST_HOST_DEVICE
#endif

namespace holdfast {

inline constexpr std::uint64_t kHashLeafBytes = 2 * 1024 * 1024;

struct Hash128 {
  std::uint64_t lo = 0, hi = 0;
  bool operator==(const Hash128&) const = default;
};

inline constexpr std::uint64_t kHashKeyLo = 0x9e3779b97f4a7c15ull;
inline constexpr std::uint64_t kHashKeyHi = 0xd1b54a32d192ed03ull;

HOLDFAST_HOST_DEVICE inline std::uint64_t HashMix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Adds word `index` of a leaf to a running sum.
HOLDFAST_HOST_DEVICE inline void HashWord(Hash128& sum, std::uint64_t index, std::uint64_t word) {
  sum.lo += HashMix(word ^ (index + 1) * kHashKeyLo);
  sum.hi += HashMix(word ^ (index + 1) * kHashKeyHi);
}

HOLDFAST_HOST_DEVICE inline Hash128 HashFinish(Hash128 sum, std::uint64_t bytes) {
  return {HashMix(sum.lo ^ bytes), HashMix(sum.hi + bytes)};
}

// Hash of `bytes` bytes at `data` on the host, as one leaf.
inline Hash128 HashLeafOnHost(const void* data, std::uint64_t bytes) {
  const char* p = static_cast<const char*>(data);
  Hash128 sum;
  for (std::uint64_t i = 0; i * 8 < bytes; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, p + i * 8, bytes - i * 8 < 8 ? bytes - i * 8 : 8);
    HashWord(sum, i, word);
  }
  return HashFinish(sum, bytes);
}

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HASH_H_
