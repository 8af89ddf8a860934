// Verifies the one grammar of switches, counts, sizes and shares: what is read, and that everything
// else is refused with the name, the text and what may be given.
#include "device/parse.h"

#include <string>
#include <utility>
#include <vector>

#include "device/bytes.h"
#include "gmock/gmock.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

template <typename T>
void ExpectRefused(const absl::StatusOr<T>& result, const std::string& text,
                   const std::string& grammar) {
  ASSERT_THAT(result, IsErrorKind(ErrorKind::kInvalidArgument)) << text;
  EXPECT_EQ(GetErrorInfo(result.status())->object, "key");
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("'" + text + "'"));
  EXPECT_THAT(std::string(result.status().message()), HasSubstr(grammar));
}

// Field case 54: a switch set to 0 or false is off.
TEST(Parse, FieldCase54SwitchesSaidToBeOffAreOff) {
  for (const char* off : {"0", "false", "FALSE", "False", "no", "NO", "off", "Off"}) {
    EXPECT_EQ(*ParseBool("key", off), false) << off;
  }
  for (const char* on : {"1", "true", "TRUE", "yes", "Yes", "on", "ON"}) {
    EXPECT_EQ(*ParseBool("key", on), true) << on;
  }
  for (const char* neither : {"", " ", "2", "-1", "01", "truth", "y", "enable", "0 "}) {
    ExpectRefused(ParseBool("key", neither), neither, kBoolGrammar);
  }
}

TEST(Parse, WholeNumbersAreDigitsAndNothingElse) {
  EXPECT_EQ(*ParseWhole("key", "0"), 0);
  EXPECT_EQ(*ParseWhole("key", "0042"), 42);
  EXPECT_EQ(*ParseWhole("key", "9223372036854775807"), INT64_MAX);
  for (const char* bad : {"", "-1", "+1", "1.0", "1e3", "0x10", " 1", "1 ", "abc", "1_000",
                          "9223372036854775808", "99999999999999999999999999"}) {
    ExpectRefused(ParseWhole("key", bad), bad, kWholeGrammar);
  }
}

TEST(Parse, SizesTakeBinaryUnits) {
  const std::vector<std::pair<const char*, std::uint64_t>> cases = {
      {"0", 0},
      {"4096", 4096},
      {"7B", 7},
      {"1KiB", kKiB},
      {"256MiB", 256 * kMiB},
      {"80GiB", 80 * kGiB},
      {"2TiB", 2048 * kGiB},
      {"9223372036854775807", INT64_MAX}};
  for (const auto& [text, bytes] : cases) {
    EXPECT_EQ(static_cast<std::uint64_t>(*ParseByteSize("key", text)), bytes) << text;
  }
  for (const char* bad : {"", "MiB", "-1MiB", "1.5GiB", "1 GiB", "1GB", "1gib", "8388608TiB",
                          "9223372036854775808", "lots"}) {
    ExpectRefused(ParseByteSize("key", bad), bad, kByteSizeGrammar);
  }
}

TEST(Parse, SharesAreExact) {
  const std::vector<std::pair<const char*, std::int64_t>> cases = {
      {"0", 0},           {"1", kShareOne},
      {"1.0", kShareOne}, {"0.92", 920'000'000},
      {"0.000000001", 1}, {"0.999999999", 999'999'999}};
  for (const auto& [text, parts] : cases) EXPECT_EQ(*ParseShare("key", text), parts) << text;
  for (const char* bad : {"", ".", "1.", ".5", "-0.1", "1.000000001", "2", "0.0000000001", "0,9",
                          "9e-1", "90%", "nan"}) {
    ExpectRefused(ParseShare("key", bad), bad, kShareGrammar);
  }
}

}  // namespace
}  // namespace holdfast
