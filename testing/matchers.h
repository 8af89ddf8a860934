// GoogleTest matchers for tests of programs that sleep. The one header of the kit that needs gmock;
// link it yourself.
//
//   ASSERT_THAT(TakePicture(subject), IsOk());
//   EXPECT_THAT(after, SameAddresses(before));
//   EXPECT_THAT(after, SameKeptBytes(before));
//   EXPECT_THAT(subject.Run({.seed = 1}), SameOutputs(golden));
//   EXPECT_THAT(*subject.Memory(), LedgerAddsUp());
//   EXPECT_THAT(graph->captured().View(), NoForeignPointer(arena));
//   EXPECT_THAT(residency.Wake(tags), FailsWith(ErrorKind::kOutOfMemory));
//   EXPECT_THAT(*RunBattery(factory, options), AllProofsHold());
#ifndef HOLDFAST_TESTING_MATCHERS_H_
#define HOLDFAST_TESTING_MATCHERS_H_

#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/ledger.h"
#include "device/error.h"
#include "gmock/gmock.h"
#include "graphs/graph.h"
#include "testing/battery.h"
#include "testing/outputs.h"
#include "testing/picture.h"

namespace holdfast::testing {

namespace matchers {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// A matcher out of a function that says what is wrong, or nullopt.
template <typename Value, typename Difference>
class Differs {
 public:
  using is_gtest_matcher = void;
  Differs(std::string what, Difference difference)
      : what_(std::move(what)), difference_(std::move(difference)) {}

  bool MatchAndExplain(const Value& value, std::ostream* why) const {
    const std::optional<std::string> difference = difference_(value);
    if (difference.has_value() && why != nullptr) *why << *difference;
    return !difference.has_value();
  }
  // What a call returned: an error does not match, and is shown.
  bool MatchAndExplain(const absl::StatusOr<Value>& value, std::ostream* why) const {
    if (value.ok()) return MatchAndExplain(*value, why);
    if (why != nullptr) *why << "which is " << value.status();
    return false;
  }
  void DescribeTo(std::ostream* out) const { *out << what_; }
  void DescribeNegationTo(std::ostream* out) const { *out << "not: " << what_; }

 private:
  std::string what_;
  Difference difference_;
};
template <typename Value, typename Difference>
Differs<Value, Difference> MakeDiffers(std::string what, Difference difference) {
  return {std::move(what), std::move(difference)};
}

class Ok {
 public:
  using is_gtest_matcher = void;
  template <typename T>
  bool MatchAndExplain(const T& value, std::ostream* why) const {
    const absl::Status& status = matchers::StatusOf(value);
    if (!status.ok() && why != nullptr) *why << "which is " << status;
    return status.ok();
  }
  void DescribeTo(std::ostream* out) const { *out << "is OK"; }
  void DescribeNegationTo(std::ostream* out) const { *out << "is an error"; }
};

class Fails {
 public:
  using is_gtest_matcher = void;
  Fails(ErrorKind kind, std::string object) : kind_(kind), object_(std::move(object)) {}
  template <typename T>
  bool MatchAndExplain(const T& value, std::ostream* why) const {
    const absl::Status& status = matchers::StatusOf(value);
    if (why != nullptr) *why << "which is " << status;
    return holdfast::IsErrorKind(status, kind_) &&
           (object_.empty() || GetErrorInfo(status)->object == object_);
  }
  void DescribeTo(std::ostream* out) const {
    *out << "is an error: " << ErrorKindName(kind_);
    if (!object_.empty()) *out << " about " << object_;
  }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "not: ";
    DescribeTo(out);
  }

 private:
  ErrorKind kind_;
  std::string object_;
};

}  // namespace matchers

// Of absl::Status and absl::StatusOr<T>.
inline matchers::Ok IsOk() { return {}; }
// An error of this kind; about `object`, unless that is empty.
inline matchers::Fails FailsWith(ErrorKind kind, std::string object = "") {
  return {kind, std::move(object)};
}

// Of a Picture taken later.
inline auto SameAddresses(Picture before) {
  return matchers::MakeDiffers<Picture>(
      "has every span where it was",
      [before = std::move(before)](const Picture& now) { return AddressDifference(before, now); });
}
// Kept and refilled contents of what is awake in both.
inline auto SameKeptBytes(Picture before) {
  return matchers::MakeDiffers<Picture>(
      "has the same kept bytes",
      [before = std::move(before)](const Picture& now) -> std::optional<std::string> {
        if (auto kept = KeptDifference(before, now); kept.has_value()) return kept;
        return RefilledDifference(before, now);
      });
}
// Tags asleep, device memory held, gate open.
inline auto SameState(Picture before) {
  return matchers::MakeDiffers<Picture>(
      "has the same state",
      [before = std::move(before)](const Picture& now) { return StateDifference(before, now); });
}

// Of Outputs, or of what Subject::Run returned.
inline auto SameOutputs(Outputs golden) {
  return matchers::MakeDiffers<Outputs>(
      "has the same output bits",
      [golden = std::move(golden)](const Outputs& now) { return FirstDifference(golden, now); });
}

// Of a LedgerReport.
inline auto LedgerAddsUp() {
  return matchers::MakeDiffers<LedgerReport>(
      "adds up to the driver's figure",
      [](const LedgerReport& report) -> std::optional<std::string> {
        if (report.adds_up()) return std::nullopt;
        return std::to_string(report.unexplained_bytes) + " B of " +
               std::to_string(report.process_bytes) + " B are unexplained";
      });
}

// Of a GraphView: every word of it, audited against this arena and these ranges.
inline auto NoForeignPointer(const Arena& arena, std::vector<ExternalRange> externals = {},
                             AuditPolicy policy = {}) {
  return matchers::MakeDiffers<GraphView>(
      "holds no pointer outside audited spans",
      [&arena, externals = std::move(externals),
       policy = std::move(policy)](const GraphView& view) -> std::optional<std::string> {
        const absl::Status verdict =
            Audit(view, arena.device(), &arena, externals, policy).Verdict("graph");
        if (verdict.ok()) return std::nullopt;
        return std::string(verdict.message());
      });
}

// Of a BatteryReport.
inline auto AllProofsHold() {
  return matchers::MakeDiffers<BatteryReport>(
      "has every proof hold and every negative control bite",
      [](const BatteryReport& report) -> std::optional<std::string> {
        std::string text;
        for (const std::string& line : report.complaints()) text += "\n  " + line;
        if (text.empty()) return std::nullopt;
        return text;
      });
}

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_MATCHERS_H_
