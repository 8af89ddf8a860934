#include "gtest/gtest.h"
#include "runtime/kernels/philox.h"

namespace holdfast {
namespace {

void ExpectWords(const PhiloxWords& actual, const PhiloxWords& expected) {
  EXPECT_EQ(actual.x, expected.x);
  EXPECT_EQ(actual.y, expected.y);
  EXPECT_EQ(actual.z, expected.z);
  EXPECT_EQ(actual.w, expected.w);
}

// The known answers its authors publish.
TEST(PhiloxTest, GivesTheKnownAnswers) {
  ExpectWords(Philox4x32({0, 0, 0, 0}, 0), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  ExpectWords(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
              {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  // Digits of pi.
  ExpectWords(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
              {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

// Negative control: one bit of the counter or the key changes every word.
TEST(PhiloxTest, DependsOnEveryWordOfCounterAndKey) {
  const PhiloxWords base = Philox4x32({1, 2, 3, 4}, 5);
  for (const PhiloxWords& other :
       {Philox4x32({0, 2, 3, 4}, 5), Philox4x32({1, 3, 3, 4}, 5), Philox4x32({1, 2, 2, 4}, 5),
        Philox4x32({1, 2, 3, 5}, 5), Philox4x32({1, 2, 3, 4}, 4),
        Philox4x32({1, 2, 3, 4}, 5 | 1ull << 32)}) {
    EXPECT_TRUE(base.x != other.x && base.y != other.y && base.z != other.z && base.w != other.w);
  }
}

}  // namespace
}  // namespace holdfast
