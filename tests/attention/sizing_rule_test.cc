// Verifies that rules refuse bad input with key, value and grammar in one message, that sizes
// beyond 64 bits are refused with the product, and that help documents every key.
#include <set>
#include <string>
#include <vector>

#include "attention/sizing/flashmla_sparse.h"
#include "attention/sizing/requests.h"
#include "attention/sizing/rule.h"
#include "gmock/gmock.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

const Arguments kSound = {"heads=16", "max_num_batched_tokens=8192", "max_model_len=786432"};

absl::StatusOr<SizingResult> Size(const Arguments& more, const Arguments& first = kSound) {
  Arguments all = first;
  all.insert(all.end(), more.begin(), more.end());
  return Evaluate(FlashMlaSparseRule(), all);
}

void ExpectRefused(const absl::StatusOr<SizingResult>& result, const std::string& key,
                   const std::string& value, const std::string& grammar) {
  ASSERT_THAT(result, IsErrorKind(ErrorKind::kInvalidArgument)) << key << " " << value;
  const std::string message(result.status().message());
  EXPECT_EQ(GetErrorInfo(result.status())->object, "flashmla_sparse " + key);
  EXPECT_THAT(message, HasSubstr(value));
  EXPECT_THAT(message, HasSubstr(grammar));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(SizingRule, SoundArgumentsAreTakenInAnyOrder) {
  ASSERT_OK_AND_ASSIGN(const SizingResult one, Size({"path_gating=off"}));
  ASSERT_OK_AND_ASSIGN(const SizingResult two,
                       Size({"max_model_len=786432", "heads=16", "max_num_batched_tokens=8192"},
                            {"path_gating=FALSE"}));
  EXPECT_EQ(one.requests, two.requests);
  EXPECT_EQ(one.requests.size(), 5u);
}

TEST(SizingRule, BadValuesAreNamedWithTheirGrammar) {
  const struct {
    const char* key;
    const char* value;
    const char* grammar;
  } cases[] = {
      {"heads", "0", "a whole number in [1, 128]"},
      {"heads", "129", "a whole number in [1, 128]"},
      {"heads", "-16", "a whole number in [1, 128]"},
      {"heads", "sixteen", "a whole number in [1, 128]"},
      {"heads", "", "a whole number in [1, 128]"},
      {"heads", "1.5", "a whole number"},
      {"heads", "16 ", "a whole number"},
      {"max_model_len", "99999999999999999999999", "a whole number in [1, 1099511627776]"},
      {"max_model_len", "1099511627777", "a whole number in [1, 1099511627776]"},
      {"path_gating", "2", "0, false, no, off or 1, true, yes, on"},
      {"path_gating", "", "0, false, no, off or 1, true, yes, on"},
      {"arch", "sm70", "one of sm90, sm100"},
      {"dcp", "0", "a whole number in [1, 4096]"},
  };
  for (const auto& c : cases) {
    Arguments arguments;
    for (const std::string& sound : kSound) {
      if (sound.rfind(std::string(c.key) + "=", 0) != 0) arguments.push_back(sound);
    }
    ExpectRefused(Size({std::string(c.key) + "=" + c.value}, arguments), c.key, c.value, c.grammar);
  }
}

TEST(SizingRule, UnknownRepeatedMissingAndMalformedArgumentsAreNamed) {
  ExpectRefused(Size({"haeds=16"}), "key", "'haeds'", "one of heads, max_num_batched_tokens");
  ExpectRefused(Size({"heads=16"}), "heads", "'16'", "given once; it was 16 before");
  ExpectRefused(Size({}, {"heads=16"}), "max_num_batched_tokens", "missing", "a whole number");
  ExpectRefused(Size({"quantized"}), "argument", "'quantized'", "key=value");
  ExpectRefused(Size({"=16"}), "argument", "'=16'", "key=value");
  ExpectRefused(Size({""}), "argument", "''", "key=value");
  ExpectRefused(Size({"arch=sm90=sm100"}), "arch", "'sm90=sm100'", "one of sm90, sm100");
  ExpectRefused(Size({std::string(1000, 'x') + "=1"}), "key", "...", "one of");
  ExpectRefused(Size({"arch=\x01\n"}), "arch", "\\x01\\n", "one of sm90");
}

TEST(SizingRule, UnknownRuleNamesTheKnownOnes) {
  const absl::StatusOr<SizingRule> rule = FindRule(AttentionSizingRules(), "flash");
  ASSERT_THAT(rule, IsErrorKind(ErrorKind::kNotFound));
  EXPECT_THAT(std::string(rule.status().message()), HasSubstr("'flash'"));
  EXPECT_THAT(std::string(rule.status().message()), HasSubstr("flashmla_sparse"));
}

TEST(SizingRule, ProductsBeyond64BitsAreRefusedByName) {
  const absl::StatusOr<SizingResult> result =
      Size({}, {"heads=128", "max_num_batched_tokens=1099511627776", "max_model_len=1"});
  ASSERT_THAT(result, IsOk());  // 128 * 2^40 * 576 * 2 still fits

  const absl::StatusOr<SizingRule> moe = FindRule(AttentionSizingRules(), "moe");
  ASSERT_OK(moe);
  const absl::StatusOr<SizingResult> huge = Evaluate(
      *moe, {"max_num_batched_tokens=1099511627776", "topk=4096", "n=1099511627776", "k=1"});
  ASSERT_THAT(huge, IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(GetErrorInfo(huge.status())->object, "workspace13");
  EXPECT_THAT(std::string(huge.status().message()),
              HasSubstr("1099511627776 * 4096 * 1099511627776 * 2 does not fit 64 bits"));
  EXPECT_THAT(std::string(huge.status().message()), HasSubstr("moe"));
}

TEST(SizingRule, ProductsAndSumsAreExactUpToTheLastBit) {
  EXPECT_EQ(*Product("x", {INT64_MAX, 2}), UINT64_MAX - 1);
  EXPECT_THAT(Product("x", {INT64_MAX, 2, 2}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(*Product("x", {INT64_MAX, INT64_MAX, 0}), 0u);
  EXPECT_THAT(Product("x", {-1, -1}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(RequestList().Add("a", {INT64_MAX, 2}, "").Add("b", {2}, "").Take(),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(CeilDiv(0, 64), 0);
  EXPECT_EQ(CeilDiv(INT64_MAX, 1), INT64_MAX);
  EXPECT_EQ(RoundUp(65, 64), 128);
}

// The functions check for themselves: a caller in C++ meets the same ranges.
TEST(SizingRule, FunctionsRefuseWhatTheirTableRefuses) {
  FlashMlaSparseKeys keys{.heads = 16, .max_num_batched_tokens = 1, .max_model_len = 1};
  EXPECT_OK(FlashMlaSparseRequests(keys));
  keys.dcp = 0;
  EXPECT_THAT(FlashMlaSparseRequests(keys), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(FlashMlaSparseRequests({}), IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST(SizingRule, HelpDocumentsEveryKeyOfEveryRule) {
  std::string last;
  for (const SizingRule& rule : AttentionSizingRules()) {
    EXPECT_LT(last, rule.name);
    last = rule.name;
    const std::string help = RuleHelp(rule);
    EXPECT_THAT(help, HasSubstr(rule.name + ": " + rule.doc));
    EXPECT_THAT(help, HasSubstr("\"total_bytes\""));
    std::set<std::string> names;
    for (const SizingKey& key : rule.keys) {
      EXPECT_THAT(help, HasSubstr("  " + key.name));
      EXPECT_THAT(help, HasSubstr(key.Grammar()));
      EXPECT_THAT(help, HasSubstr(key.doc));
      EXPECT_TRUE(names.insert(key.name).second) << key.name;
      if (!key.required) {
        EXPECT_OK(key.CheckValue(rule.name, key.default_value));
      }
    }
  }
}

}  // namespace
}  // namespace holdfast
