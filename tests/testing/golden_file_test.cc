// Verifies that golden outputs come back as saved, that the first difference is named, and that a
// truncated or changed file is refused whole.
#include "testing/golden_file.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gtest/gtest.h"
#include "testing/matchers.h"

namespace holdfast::testing {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

class GoldenFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_THAT(SaveGolden(path_, golden_), IsOk()); }
  std::string Text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void Write(const std::string& text) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
  }

  const std::string path_ = ::testing::TempDir() + "outputs.golden";
  const GoldenFile golden_{
      .subject = "toy",
      .seed = 7,
      .outputs = {{"decode/4", Bytes({1, 2, 3})}, {"empty", {}}, {"prefill/16", Bytes({0, 255})}}};
};

TEST_F(GoldenFileTest, ComesBackAsSaved) {
  const absl::StatusOr<GoldenFile> loaded = LoadGolden(path_);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->subject, "toy");
  EXPECT_EQ(loaded->seed, 7u);
  EXPECT_THAT(loaded->outputs, SameOutputs(golden_.outputs));
}

TEST_F(GoldenFileTest, ATruncatedFileIsRefusedAtEveryLength) {
  const std::string text = Text();
  for (std::size_t length = 0; length < text.size(); ++length) {
    Write(text.substr(0, length));
    ASSERT_THAT(LoadGolden(path_), FailsWith(ErrorKind::kCorrupted, path_)) << length;
  }
  Write(text + "x");
  EXPECT_THAT(LoadGolden(path_), FailsWith(ErrorKind::kCorrupted, path_));
}

TEST_F(GoldenFileTest, AChangedBitIsRefusedWhereverItIs) {
  const std::string text = Text();
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    Write(changed);
    ASSERT_THAT(LoadGolden(path_), FailsWith(ErrorKind::kCorrupted, path_)) << at;
  }
}

TEST_F(GoldenFileTest, FilesThatAreNotThereOrCannotBe) {
  EXPECT_THAT(LoadGolden(path_ + ".other"), FailsWith(ErrorKind::kNotFound));
  EXPECT_THAT(SaveGolden(::testing::TempDir() + "no/such/folder/a", golden_),
              FailsWith(ErrorKind::kNotFound));
}

TEST(OutputsTest, TheFirstDifferenceIsNamed) {
  const Outputs golden = {{"a", Bytes({1, 2, 3})}, {"b", Bytes({4})}};
  EXPECT_EQ(FirstDifference(golden, golden), std::nullopt);
  EXPECT_EQ(FirstDifference(golden, {{"a", Bytes({1, 9, 8})}, {"b", Bytes({4})}}),
            "a: byte 1 is 0x09, was 0x02 (2 of 3 bytes differ)");
  EXPECT_EQ(FirstDifference(golden, {{"a", Bytes({1, 2})}, {"b", Bytes({4})}}),
            "a: 2 bytes, were 3");
  EXPECT_EQ(FirstDifference(golden, {{"a", Bytes({1, 2, 3})}}), "b: is missing");
  EXPECT_EQ(FirstDifference({{"b", Bytes({4})}}, {{"b", Bytes({4})}, {"c", {}}}),
            "c: was not there before");
}

}  // namespace
}  // namespace holdfast::testing
