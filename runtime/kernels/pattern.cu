#include "runtime/kernels/atomics.cuh"
#include "runtime/kernels/launch.h"
#include "runtime/kernels/pattern.h"

namespace holdfast {
namespace {

// The bytes of the buffer's last, cut word, read one by one: behind them lies somebody else's.
__device__ std::uint64_t ReadWord(const char* at, std::uint64_t bytes) {
  if (bytes >= 8) return *reinterpret_cast<const std::uint64_t*>(at);
  std::uint64_t word = 0;
  for (std::uint64_t b = 0; b < bytes; ++b) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(at[b])) << (8 * b);
  }
  return word;
}

__global__ void __launch_bounds__(kRowThreads)
    PatternWriteKernel(const __grid_constant__ PatternWriteParams p) {
  const std::uint64_t key = PatternKey(p.key, p.salt);
  char* const data = static_cast<char*>(p.data);
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * kRowThreads * 8;
  for (std::uint64_t at = (static_cast<std::uint64_t>(blockIdx.x) * kRowThreads + threadIdx.x) * 8;
       at < p.bytes; at += step) {
    const std::uint64_t word = PatternWord(key, at / 8);
    if (p.bytes - at >= 8) {
      *reinterpret_cast<std::uint64_t*>(data + at) = word;
      continue;
    }
    for (std::uint64_t b = 0; b < p.bytes - at; ++b) data[at + b] = static_cast<char>(word >> (8 * b));
  }
}

__global__ void __launch_bounds__(kRowThreads)
    PatternVerifyKernel(const __grid_constant__ PatternVerifyParams p) {
  const std::uint64_t key = PatternKey(p.key, p.salt);
  const char* const data = static_cast<const char*>(p.data);
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * kRowThreads * 8;
  for (std::uint64_t at = (static_cast<std::uint64_t>(blockIdx.x) * kRowThreads + threadIdx.x) * 8;
       at < p.bytes; at += step) {
    const std::uint64_t bytes = p.bytes - at;
    const std::uint64_t wanted = FirstBytes(PatternWord(key, at / 8), bytes);
    const std::uint64_t seen = ReadWord(data + at, bytes);
    if (seen != wanted) Blame(p.fault, p.digest, at, seen, wanted);
  }
}

}  // namespace

const void* PatternWriteCuda() { return reinterpret_cast<const void*>(&PatternWriteKernel); }
const void* PatternVerifyCuda() { return reinterpret_cast<const void*>(&PatternVerifyKernel); }

}  // namespace holdfast
