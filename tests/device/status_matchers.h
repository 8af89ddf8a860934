// GoogleTest matchers for absl::Status and absl::StatusOr<T>.
//
//   EXPECT_THAT(arena.Lock(), IsOk());
//   EXPECT_THAT(arena.Commit(span), IsErrorKind(ErrorKind::kOutOfMemory));
//   ASSERT_OK_AND_ASSIGN(auto chunk, device->CreateChunk(bytes));
#ifndef HOLDFAST_TESTS_DEVICE_STATUS_MATCHERS_H_
#define HOLDFAST_TESTS_DEVICE_STATUS_MATCHERS_H_

#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/error.h"
#include "gmock/gmock.h"

namespace holdfast {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

class IsOkMatcher {
 public:
  using is_gtest_matcher = void;
  template <typename T>
  bool MatchAndExplain(const T& value, std::ostream* why) const {
    const absl::Status& status = StatusOf(value);
    if (!status.ok() && why != nullptr) *why << "which is " << status;
    return status.ok();
  }
  void DescribeTo(std::ostream* out) const { *out << "is OK"; }
  void DescribeNegationTo(std::ostream* out) const { *out << "is an error"; }
};
inline IsOkMatcher IsOk() { return {}; }

class IsErrorKindMatcher {
 public:
  using is_gtest_matcher = void;
  explicit IsErrorKindMatcher(ErrorKind kind) : kind_(kind) {}
  template <typename T>
  bool MatchAndExplain(const T& value, std::ostream* why) const {
    const absl::Status& status = StatusOf(value);
    if (why != nullptr) *why << "which is " << status;
    return IsErrorKind(status, kind_);
  }
  void DescribeTo(std::ostream* out) const { *out << "is an error: " << ErrorKindName(kind_); }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "is not an error: " << ErrorKindName(kind_);
  }

 private:
  ErrorKind kind_;
};
inline IsErrorKindMatcher IsErrorKind(ErrorKind kind) { return IsErrorKindMatcher(kind); }

}  // namespace holdfast

#define EXPECT_OK(expression) EXPECT_THAT(expression, ::holdfast::IsOk())
#define ASSERT_OK(expression) ASSERT_THAT(expression, ::holdfast::IsOk())

// Declares or assigns `lhs` from a StatusOr; a test that gets an error ends here.
#define ASSERT_OK_AND_ASSIGN(lhs, expression) \
  ASSERT_OK_AND_ASSIGN_IMPL(HOLDFAST_CONCAT(test_result_, __LINE__), lhs, expression)
#define ASSERT_OK_AND_ASSIGN_IMPL(result, lhs, expression) \
  auto result = (expression);                              \
  ASSERT_THAT(result, ::holdfast::IsOk());                 \
  lhs = *std::move(result)

#endif  // HOLDFAST_TESTS_DEVICE_STATUS_MATCHERS_H_
