// Ops of a synthetic layer on the buffers it asked for: one writes every byte, the other reads
// every byte back and says what differs. What a byte must be follows from the buffer's key, its
// offset and what the step was given, so that bytes of another buffer, and of this one in another
// step, are wrong here.
#ifndef HOLDFAST_RUNTIME_KERNELS_PATTERN_H_
#define HOLDFAST_RUNTIME_KERNELS_PATTERN_H_

#include <cstdint>

#include "device/hash.h"
#include "device/op.h"

namespace holdfast {

// What a verification found in one buffer since it was loaded. All zero: nothing.
struct PatternFault {
  std::uint64_t differing;       // words
  std::uint64_t first_from_end;  // ~(offset of the first in bytes): zero stands for none
};

// Word i of a buffer. `salt` is null for buffers that hold the same in every step.
HOLDFAST_HOST_DEVICE constexpr std::uint64_t PatternWord(std::uint64_t key, std::uint64_t i) {
  return HashMix(key + i * kHashKeyLo);
}
HOLDFAST_HOST_DEVICE inline std::uint64_t PatternKey(std::uint64_t key, const std::uint64_t* salt) {
  return salt == nullptr ? key : HashMix(key ^ *salt);
}
// The first `bytes` (1 to 8) of a word, the rest 0: the last word of a buffer may be cut.
HOLDFAST_HOST_DEVICE constexpr std::uint64_t FirstBytes(std::uint64_t word, std::uint64_t bytes) {
  return bytes >= 8 ? word : word & ((std::uint64_t{1} << (8 * bytes)) - 1);
}
// What a wrong word adds to the step's digest: never 0.
HOLDFAST_HOST_DEVICE constexpr std::uint64_t PatternBlame(std::uint64_t seen,
                                                          std::uint64_t wanted) {
  return HashMix(seen ^ HashMix(wanted)) | 1;
}

// Pointers to words are 8-byte aligned, as `data` is.
struct PatternWriteParams {
  void* data;                 // (bytes)
  const std::uint64_t* salt;  // or null
  std::uint64_t bytes, key;
};
const Op& PatternWriteOp();
LaunchShape PatternShape(std::uint64_t bytes);  // of both ops

struct PatternVerifyParams {
  const void* data;           // (bytes)
  const std::uint64_t* salt;  // or null
  std::uint64_t* digest;      // raised by the blame of each wrong word
  PatternFault* fault;        // of this buffer
  std::uint64_t bytes, key;
};
const Op& PatternVerifyOp();

// The CUDA twins: addresses of __global__ functions.
const void* PatternWriteCuda();
const void* PatternVerifyCuda();

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_PATTERN_H_
