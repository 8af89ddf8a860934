// Errors carry what went wrong as data, through annotation and back.
#include "device/error.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

ErrorInfo FullInfo() {
  return {.kind = ErrorKind::kOutOfMemory,
          .object = "weights",
          .need = 4096,
          .have = 1024,
          .call = "cuMemCreate",
          .code = 2};
}

TEST(ErrorTest, InfoComesBackWhole) {
  const std::optional<ErrorInfo> info = GetErrorInfo(MakeError(FullInfo(), "no room"));
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(info->object, "weights");
  EXPECT_EQ(info->need, 4096u);
  EXPECT_EQ(info->have, 1024u);
  EXPECT_EQ(info->call, "cuMemCreate");
  EXPECT_EQ(info->code, 2);
}

TEST(ErrorTest, MessageLeavesEmptyPartsOut) {
  EXPECT_EQ(MakeError(FullInfo(), "no room").message(),
            "out of memory: weights: no room (need 4096, have 1024; call cuMemCreate code 2)");
  EXPECT_EQ(MakeError({.kind = ErrorKind::kLocked}, "no").message(), "locked: no");
  EXPECT_EQ(MakeError({.kind = ErrorKind::kDriver, .call = "mmap"}, "no").message(),
            "driver: no (call mmap)");
}

TEST(ErrorTest, KindIsMatchedAndOtherStatusesHaveNone) {
  const absl::Status error = MakeError(FullInfo(), "no room");
  EXPECT_TRUE(IsErrorKind(error, ErrorKind::kOutOfMemory));
  EXPECT_FALSE(IsErrorKind(error, ErrorKind::kOutOfHostMemory));
  EXPECT_FALSE(IsErrorKind(absl::OkStatus(), ErrorKind::kInvalidArgument));
  EXPECT_FALSE(IsErrorKind(absl::InvalidArgumentError("x"), ErrorKind::kInvalidArgument));
  EXPECT_FALSE(GetErrorInfo(absl::OkStatus()).has_value());
}

TEST(ErrorTest, AnnotationKeepsThePayload) {
  const absl::Status error = Annotate(MakeError(FullInfo(), "no room"), "wake of weights");
  EXPECT_EQ(std::string(error.message()).rfind("wake of weights: out of memory", 0), 0u);
  EXPECT_EQ(GetErrorInfo(error)->need, 4096u);
  EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok());
}

TEST(ErrorTest, EveryKindIsAnErrorWithANameOfItsOwn) {
  std::vector<std::string> names;
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::kInternal); ++kind) {
    const ErrorKind k = static_cast<ErrorKind>(kind);
    const absl::Status error = MakeError({.kind = k}, "x");
    EXPECT_THAT(error, IsErrorKind(k));
    EXPECT_NE(std::string(ErrorKindName(k)), "unknown");
    names.push_back(ErrorKindName(k));
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return MakeError({.kind = ErrorKind::kInvalidArgument}, "odd");
  return value / 2;
}
absl::StatusOr<int> Quarter(int value) {
  HOLDFAST_ASSIGN_OR_RETURN(const int half, Half(value));
  HOLDFAST_RETURN_IF_ERROR(Half(half).status());
  return half / 2;
}

TEST(ErrorTest, MacrosReturnTheFirstError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_THAT(Quarter(3), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(Quarter(6), IsErrorKind(ErrorKind::kInvalidArgument));
}

}  // namespace
}  // namespace holdfast
