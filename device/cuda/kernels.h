// The device's own kernels, as the host launches them.
#ifndef HOLDFAST_DEVICE_CUDA_KERNELS_H_
#define HOLDFAST_DEVICE_CUDA_KERNELS_H_

#include <cstdint>

#include "device/hash.h"
#include "device/word_scan.h"

namespace holdfast {

// Hashes bytes [data, data + bytes) leaf by leaf into out[0 .. ceil(bytes / kHashLeafBytes)).
struct HashLeavesParams {
  const std::uint8_t* data = nullptr;  // 8-byte aligned
  std::uint64_t bytes = 0;             // > 0
  Hash128* out = nullptr;              // memory the GPU can write: pinned host or its own
  std::uint32_t blocks_per_leaf = 1;   // the kernel's cluster size
};

inline constexpr unsigned kHashBlockThreads = 256;

// The __global__ function that takes a HashLeavesParams by value. Its grid is one cluster a leaf:
// as many blocks of kHashBlockThreads as the loaded code asks for in requiredClusterWidth (none
// before Hopper: one block).
const void* HashLeavesFunction();

// Scans words [data, data + words) as WordScan asks.
struct ScanWordsParams {
  const std::uint64_t* data = nullptr;
  std::uint64_t words = 0;
  WordScan* scan = nullptr;  // memory the GPU reads and writes: pinned host
};

inline constexpr unsigned kScanBlockThreads = 256;

// The __global__ function that takes a ScanWordsParams by value; any number of blocks.
const void* ScanWordsFunction();

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_KERNELS_H_
