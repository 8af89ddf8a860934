// Byte arithmetic refuses what does not fit, and counts read as people read them.
#include "device/bytes.h"

#include <limits>

#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(BytesTest, AlignsUpAndDown) {
  EXPECT_EQ(AlignUp(0, 256), 0u);
  EXPECT_EQ(AlignUp(1, 256), 256u);
  EXPECT_EQ(AlignUp(256, 256), 256u);
  EXPECT_EQ(AlignDown(511, 256), 256u);
  EXPECT_TRUE(IsPowerOfTwo(256));
  EXPECT_FALSE(IsPowerOfTwo(0));
  EXPECT_FALSE(IsPowerOfTwo(24));
}

TEST(BytesTest, OverflowIsAnErrorThatNamesTheQuantity) {
  EXPECT_THAT(CheckedMultiply(kMax, 2, "KV extent"), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(CheckedAdd(kMax, 1, "KV extent"), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(GetErrorInfo(CheckedAdd(kMax, 1, "KV extent").status())->object, "KV extent");
  EXPECT_EQ(*CheckedMultiply(kMax, 1, "x"), kMax);
  EXPECT_EQ(*CheckedAdd(kMax - 1, 1, "x"), kMax);
}

TEST(BytesTest, FormatsInTheLargestFittingUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB (1024 B)");
  EXPECT_EQ(FormatBytes(18350080), "17.5 MiB (18350080 B)");
  EXPECT_EQ(FormatBytes(kGiB - 1), "1.0 GiB (1073741823 B)");
}

}  // namespace
}  // namespace holdfast
