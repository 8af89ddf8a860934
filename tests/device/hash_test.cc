// The leaf hash sees every bit, every place and the length; a hash that does not fails these
// checks.
#include "device/hash.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

using Words = std::vector<std::uint64_t>;
using Hasher = std::function<Hash128(const Words&)>;

constexpr std::size_t kTileWords = kHashTileBytes / 8;

Words RandomWords(std::size_t count) {
  std::mt19937_64 random(7);
  Words words(count);
  for (std::uint64_t& word : words) word = random();
  return words;
}

Hash128 HashOf(const Words& words) { return HashLeafOnHost(words.data(), words.size() * 8); }

// -- Checks: how many of some changes a hash misses. Both halves have to show a change. -----------

class Misses {
 public:
  Misses(Hasher hash, const Words& before) : hash_(std::move(hash)), before_(hash_(before)) {}
  void Look(const Words& after) {
    const Hash128 now = hash_(after);
    if (now.lo == before_.lo || now.hi == before_.hi) ++count_;
  }
  int count() const { return count_; }

 private:
  const Hasher hash_;
  const Hash128 before_;
  int count_ = 0;
};

// Every bit of a few words, and one bit of every 61st word of the rest.
int MissedFlips(const Hasher& hash, Words words) {
  Misses misses(hash, words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool all = i < 70 || i + 5 > words.size();
    for (unsigned bit = 0; bit < 64; ++bit) {
      if (!all && (i % 61 != 0 || bit != i / 61 % 64)) continue;
      words[i] ^= std::uint64_t{1} << bit;
      misses.Look(words);
      words[i] ^= std::uint64_t{1} << bit;
    }
  }
  return misses.count();
}

int MissedSwaps(const Hasher& hash, Words words) {
  Misses misses(hash, words);
  for (std::size_t i = 1; i < words.size(); i += i < 140 ? 1 : 97) {
    std::swap(words[0], words[i]);
    misses.Look(words);
    std::swap(words[0], words[i]);
  }
  return misses.count();
}

int MissedHalfSwaps(const Hasher& hash, Words words) {
  Misses misses(hash, words);
  for (std::size_t i = 0; i < words.size(); i += 13) {
    words[i] = words[i] << 32 | words[i] >> 32;
    misses.Look(words);
    words[i] = words[i] << 32 | words[i] >> 32;
  }
  return misses.count();
}

// One unit moved from a cell to another and back elsewhere, at equal distances: what a sum with
// weights that grow with the place cannot see.
int MissedTransfers(const Hasher& hash, std::size_t count) {
  Words words(count, 1000);
  Misses misses(hash, words);
  for (const std::size_t distance : {1, 2, 64, 512}) {
    for (std::size_t from = 0; from + 4 * distance < count; from += 37) {
      Words after = words;
      after[from] += 1;
      after[from + distance] -= 1;
      after[from + 2 * distance] -= 1;
      after[from + 3 * distance] += 1;
      misses.Look(after);
    }
  }
  return misses.count();
}

int MissedTails(const Hasher& hash) {
  int missed = 0;
  for (std::size_t words = 0; words < 1030; ++words) {
    Misses misses(hash, Words(words, 0));
    misses.Look(Words(words + 1, 0));
    missed += misses.count();
  }
  return missed;
}

// Contents that move by a word, a unit, a row, a tile.
int MissedMoves(const Hasher& hash, const Words& words) {
  Misses misses(hash, words);
  for (const std::size_t by : {std::size_t{1}, std::size_t{2}, std::size_t{64}, kTileWords}) {
    Words after = words;
    std::rotate(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(by), after.end());
    misses.Look(after);
  }
  return misses.count();
}

TEST(HashTest, EveryKindOfChangeShows) {
  const Words words = RandomWords(3 * kTileWords + 77);
  EXPECT_EQ(MissedFlips(HashOf, words), 0);
  EXPECT_EQ(MissedFlips(HashOf, Words(kTileWords, 0)), 0);
  EXPECT_EQ(MissedFlips(HashOf, Words(kTileWords, ~std::uint64_t{0})), 0);
  EXPECT_EQ(MissedSwaps(HashOf, words), 0);
  EXPECT_EQ(MissedHalfSwaps(HashOf, words), 0);
  EXPECT_EQ(MissedTransfers(HashOf, 4 * kTileWords), 0);
  EXPECT_EQ(MissedTails(HashOf), 0);
  EXPECT_EQ(MissedMoves(HashOf, words), 0);
}

// Negative control: an exclusive or of all words.
TEST(HashTest, AnExclusiveOrFailsTheChecks) {
  const Hasher weak = [](const Words& words) {
    Hash128 sum;
    for (const std::uint64_t word : words) sum.lo ^= word;
    sum.hi = HashMix(sum.lo);
    return sum;
  };
  const Words words = RandomWords(3 * kTileWords);
  EXPECT_GT(MissedSwaps(weak, words), 0);
  EXPECT_GT(MissedTails(weak), 0);
  EXPECT_GT(MissedMoves(weak, words), 0);
}

// Negative control: low halves only, with weights that grow with the place.
TEST(HashTest, AWeightedSumOfHalvesFailsTheChecks) {
  const Hasher weak = [](const Words& words) {
    Hash128 sum;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint64_t low = words[i] & 0xffffffffu;
      sum.lo += low * ((i + 1) * kHashKeyLo);
      sum.hi += low * ((i + 1) * kHashKeyHi);
    }
    return sum;
  };
  EXPECT_GT(MissedFlips(weak, RandomWords(kTileWords)), 0);
  EXPECT_GT(MissedTransfers(weak, kTileWords), 0);
}

// -- The definition -------------------------------------------------------------------------------

// What the header says, word by word.
Hash128 ByDefinition(const std::vector<unsigned char>& bytes) {
  const std::size_t tiles = (bytes.size() + kHashTileBytes - 1) / kHashTileBytes;
  std::vector<unsigned char> padded = bytes;
  padded.resize(tiles * kHashTileBytes);
  Hash128 sum;
  for (std::size_t q = 0; q < tiles * kHashTileStrands; ++q) {
    HashStrand strand;
    for (unsigned k = 0; k < kHashStrandWords; ++k) {
      const std::size_t unit = q / kHashTileStrands * (kHashTileBytes / kHashUnitBytes) +
                               k / 2 * kHashTileStrands + q % kHashTileStrands;
      std::uint64_t word = 0;
      std::memcpy(&word, padded.data() + unit * kHashUnitBytes + k % 2 * 8, 8);
      for (unsigned j = 0; j < kHashLanes; ++j) strand.lane[j] += HashProduct(word, HashKey(j, k));
    }
    HashAddStrand(sum, q, strand);
  }
  return HashFinish(sum, bytes.size());
}

std::vector<unsigned char> Counting(std::size_t size) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i * 167 + i / 251);
  return bytes;
}

TEST(HashTest, TheHostComputesTheDefinition) {
  for (const std::size_t size : {0, 1, 7, 8, 9, 15, 16, 17, 511, 512, 4095, 4096, 4097, 20000}) {
    const std::vector<unsigned char> bytes = Counting(size);
    EXPECT_EQ(HashLeafOnHost(bytes.data(), size), ByDefinition(bytes)) << size;
    // From an odd address too.
    std::vector<unsigned char> moved(1);
    moved.insert(moved.end(), bytes.begin(), bytes.end());
    EXPECT_EQ(HashLeafOnHost(moved.data() + 1, size), ByDefinition(bytes)) << size;
  }
}

// Values written down once: a file of hashes made by one version is read by the next.
TEST(HashTest, KnownAnswers) {
  struct Answer {
    std::size_t size;
    Hash128 hash;
  };
  const Answer answers[] = {
      {0, {0x0000000000000000, 0x0000000000000000}},
      {1, {0x89ce5aa536237a77, 0xef7b2e4581b7213b}},
      {8, {0x9548d382d252ab5f, 0x526f12d5fffd8572}},
      {100, {0x1530389977674b91, 0x201853de486d2257}},
      {4096, {0xd522b9144d6dc38e, 0x6e603e1e404dcf1d}},
      {10000, {0x32ddccb6d2f0cc81, 0x875c9a8a2db01abe}},
      {65536, {0xc706ad5651cbd343, 0x7c16829cc2e33886}},
  };
  for (const Answer& answer : answers) {
    const Hash128 hash = HashLeafOnHost(Counting(answer.size).data(), answer.size);
    EXPECT_EQ(hash.lo, answer.hash.lo) << answer.size;
    EXPECT_EQ(hash.hi, answer.hash.hi) << answer.size;
  }
}

// The keys of the four lanes differ in both halves at every word: a changed half escapes at most
// one of them.
TEST(HashTest, NoTwoLanesShareHalfAKey) {
  for (unsigned k = 0; k < kHashStrandWords; ++k) {
    for (unsigned j = 0; j < kHashLanes; ++j) {
      for (unsigned other = 0; other < j; ++other) {
        EXPECT_NE(HashKey(j, k) >> 32, HashKey(other, k) >> 32);
        EXPECT_NE(HashKey(j, k) & 0xffffffffu, HashKey(other, k) & 0xffffffffu);
      }
    }
  }
}

}  // namespace
}  // namespace holdfast
