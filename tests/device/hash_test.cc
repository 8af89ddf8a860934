// The leaf hash sees every bit, every position and the length.
#include "device/hash.h"

#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

std::vector<std::uint64_t> RandomWords(std::size_t count) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> words(count);
  for (std::uint64_t& word : words) word = random();
  return words;
}

Hash128 HashOf(const std::vector<std::uint64_t>& words) {
  return HashLeafOnHost(words.data(), words.size() * 8);
}

TEST(HashTest, AnyFlippedBitShows) {
  std::vector<std::uint64_t> words = RandomWords(64);
  const Hash128 before = HashOf(words);
  for (std::size_t bit = 0; bit < words.size() * 64; ++bit) {
    words[bit / 64] ^= std::uint64_t{1} << (bit % 64);
    const Hash128 after = HashOf(words);
    EXPECT_TRUE(after.lo != before.lo && after.hi != before.hi) << "bit " << bit;
    words[bit / 64] ^= std::uint64_t{1} << (bit % 64);
  }
  EXPECT_EQ(HashOf(words), before);
}

TEST(HashTest, SwappedWordsShow) {
  std::vector<std::uint64_t> words = RandomWords(64);
  const Hash128 before = HashOf(words);
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::swap(words[0], words[i]);
    EXPECT_NE(HashOf(words), before) << i;
    std::swap(words[0], words[i]);
  }
}

TEST(HashTest, TrailingZerosAreNotTheSameAsNone) {
  const std::vector<std::uint64_t> zeros(4, 0);
  for (std::uint64_t bytes = 0; bytes < 32; ++bytes) {
    EXPECT_NE(HashLeafOnHost(zeros.data(), bytes), HashLeafOnHost(zeros.data(), bytes + 1))
        << bytes;
  }
}

TEST(HashTest, AnyOrderOfWordsGivesTheSameSum) {
  const std::vector<std::uint64_t> words = RandomWords(33);
  Hash128 sum;
  for (std::size_t i = words.size(); i-- > 0;) HashWord(sum, i, words[i]);
  EXPECT_EQ(HashFinish(sum, words.size() * 8), HashOf(words));
}

TEST(HashTest, TailIsPaddedWithZeros) {
  const std::vector<std::uint64_t> words = RandomWords(2);
  const std::uint64_t masked = words[1] & 0xffffffu;
  Hash128 sum;
  HashWord(sum, 0, words[0]);
  HashWord(sum, 1, masked);
  EXPECT_EQ(HashLeafOnHost(words.data(), 11), HashFinish(sum, 11));
}

}  // namespace
}  // namespace holdfast
