// A scan of device memory for addresses: which aligned 8-byte words lie in [low, high), and of
// those, which point into none of the known ranges. The same on host and GPU.
#ifndef HOLDFAST_DEVICE_WORD_SCAN_H_
#define HOLDFAST_DEVICE_WORD_SCAN_H_

#include <cstdint>

#include "device/hash.h"

namespace holdfast {

inline constexpr std::uint32_t kMaxScanRanges = 1024;
inline constexpr std::uint32_t kMaxScanHits = 1024;

// A word of the scanned memory.
struct WordHit {
  std::uint64_t offset;  // bytes from the start of the scanned range
  std::uint64_t word;
};

// Request and answer in one block of pinned memory.
struct WordScan {
  // In. Words outside [low, high) are numbers.
  std::uint64_t low = 0, high = 0;
  std::uint32_t range_count = 0;
  // In: [begin, end], ascending, not overlapping. A word equal to one's end and the next one's
  // begin belongs to the next, as everywhere.
  struct Range {
    std::uint64_t begin, end;  // no initialisers: it also lies in a GPU's shared memory
  } ranges[kMaxScanRanges];
  // Out: words in each range.
  std::uint64_t counts[kMaxScanRanges] = {};
  // Out: words in none; the first kMaxScanHits that were met, in any order.
  std::uint64_t found = 0;
  WordHit hits[kMaxScanHits];
};

// Index of the range that `word` belongs to; `count` if none.
HOLDFAST_HOST_DEVICE inline std::uint32_t FindScanRange(const WordScan::Range* ranges,
                                                        std::uint32_t count, std::uint64_t word) {
  std::uint32_t first = 0, last = count;  // the first range that begins above the word is in here
  while (first < last) {
    const std::uint32_t middle = first + (last - first) / 2;
    if (ranges[middle].begin <= word) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first > 0 && word <= ranges[first - 1].end ? first - 1 : count;
}

// The scan of `bytes` bytes at `data`, on the host. A tail shorter than a word holds no address.
inline void ScanWordsOnHost(const void* data, std::uint64_t bytes, WordScan* scan) {
  const std::uint64_t* words = static_cast<const std::uint64_t*>(data);
  for (std::uint64_t i = 0; i < bytes / 8; ++i) {
    const std::uint64_t word = words[i];
    if (word < scan->low || word >= scan->high) continue;
    const std::uint32_t range = FindScanRange(scan->ranges, scan->range_count, word);
    if (range < scan->range_count) {
      ++scan->counts[range];
    } else if (scan->found++ < kMaxScanHits) {
      scan->hits[scan->found - 1] = {i * 8, word};
    }
  }
}

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_WORD_SCAN_H_
