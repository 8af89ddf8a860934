// Verifies that JSON from a file is read exactly, and that what is wrong with it is an error, never
// a crash.
#include "runtime/json.h"

#include <nlohmann/json.hpp>
#include <string>

#include "device/error.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

TEST(JsonTest, ReadsWhatTheLibraryItselfReads) {
  const std::string text =
      R"({"a": [1, -2, 3.5, true, null, "x\u00e9"], "b": {"c": {}, "d": []}, "n": 18446744073709551615})";
  ASSERT_OK_AND_ASSIGN(const nlohmann::json value, ParseJson(text, "doc"));
  EXPECT_EQ(value, nlohmann::json::parse(text));
  EXPECT_EQ(value["n"].get<std::uint64_t>(), 18446744073709551615u);
}

TEST(JsonTest, ReadsAScalar) {
  ASSERT_OK_AND_ASSIGN(const nlohmann::json value, ParseJson(" 7 ", "doc"));
  EXPECT_EQ(value, 7);
}

struct Bad {
  std::string name, text, message;
};
class JsonRefuses : public testing::TestWithParam<Bad> {};

TEST_P(JsonRefuses, NamesDocumentAndFault) {
  const auto result = ParseJson(GetParam().text, "config.json");
  ASSERT_THAT(result, IsErrorKind(ErrorKind::kCorrupted));
  EXPECT_EQ(GetErrorInfo(result.status())->object, "config.json");
  EXPECT_THAT(std::string(result.status().message()), testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, JsonRefuses,
    testing::Values(Bad{"Nothing", "", "byte 1"}, Bad{"Cut", R"({"a": [1, 2)", "byte 12"},
                    Bad{"Garbage", "\x93NUMPY", "byte 1"}, Bad{"TwoValues", "{} {}", "byte 4"},
                    Bad{"TrailingComma", "[1,]", "byte 4"}, Bad{"Comment", "{/* */}", "byte 2"},
                    Bad{"ZeroByteThenMore", std::string("{}\0{}", 5), "byte 3"},
                    Bad{"BadUtf8", "[\"\xff\"]", "byte 3"},
                    Bad{"NumberBeyondDouble", "[1e999]", "byte 6"},
                    Bad{"RepeatedKey", R"({"a": 1, "b": 2, "a": 3})", "repeats the key \"a\""},
                    Bad{"RepeatedInnerKey", R"([{"x": {"k\n": 1, "k\n": 1}}])", R"(the key "k\n")"},
                    Bad{"Deep", std::string(33, '[') + std::string(33, ']'), "deeper than 32"},
                    Bad{"VeryDeepAndCut", std::string(1'000'000, '['), "deeper than 32"}),
    [](const auto& info) { return info.param.name; });

TEST(JsonTest, TheSameKeyInTwoObjectsIsNoRepetition) {
  EXPECT_OK(ParseJson(R"([{"a": {"a": 1}}, {"a": 1}])", "doc"));
}

TEST(JsonTest, LimitsHoldToTheLastByteLevelAndValue) {
  EXPECT_OK(ParseJson("[1,2]", "doc", {.max_bytes = 5, .max_depth = 1, .max_values = 3}));
  const auto longer = ParseJson("[1,2]", "doc", {.max_bytes = 4});
  ASSERT_THAT(longer, IsErrorKind(ErrorKind::kCorrupted));
  EXPECT_EQ(GetErrorInfo(longer.status())->need, 5u);
  EXPECT_EQ(GetErrorInfo(longer.status())->have, 4u);
  EXPECT_THAT(ParseJson("[[]]", "doc", {.max_depth = 1}), IsErrorKind(ErrorKind::kCorrupted));
  EXPECT_THAT(ParseJson("[1,2]", "doc", {.max_values = 2}), IsErrorKind(ErrorKind::kCorrupted));
}

TEST(JsonTest, QuotedNamesAreShortAndPrintable) {
  EXPECT_EQ(QuoteName("a\x01\"\n"), "\"a\\x01\\\"\\n\"");
  EXPECT_LT(QuoteName(std::string(100'000, 'x')).size(), 200u);
}

}  // namespace
}  // namespace holdfast
