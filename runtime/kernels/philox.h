// Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011): random words as a function of key and
// counter, so that a draw needs no state and is the same wherever and whenever it is made.
#ifndef HOLDFAST_RUNTIME_KERNELS_PHILOX_H_
#define HOLDFAST_RUNTIME_KERNELS_PHILOX_H_

#include <cstdint>

#include "device/hash.h"  // HOLDFAST_HOST_DEVICE

namespace holdfast {

struct PhiloxWords {
  std::uint32_t x, y, z, w;
};

HOLDFAST_HOST_DEVICE inline PhiloxWords Philox4x32(PhiloxWords counter, std::uint64_t key) {
  std::uint32_t key_low = static_cast<std::uint32_t>(key);
  std::uint32_t key_high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter.x;
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter.z;
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter.y ^ key_low, static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter.w ^ key_high, static_cast<std::uint32_t>(a)};
    key_low += 0x9E3779B9u;   // golden ratio
    key_high += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return counter;
}

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_PHILOX_H_
