#include <cctype>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "device/error.h"
#include "testing/cycle_plan.h"

namespace holdfast::testing {
namespace {

constexpr std::uint64_t kMostRepeats = 1000;
constexpr std::size_t kMostSteps = 100'000;
constexpr int kDeepest = 16;  // repeats within repeats

bool IsMark(char c) { return c == ';' || c == '(' || c == ')'; }

// Words and marks one after the other; `at` is where the current one starts.
class Words {
 public:
  explicit Words(const std::string& text) : text_(text) { Next(); }

  const std::string& word() const { return word_; }  // "" at the end
  std::size_t at() const { return at_; }
  bool Is(const char* word) const { return word_ == word; }
  void Next() {
    while (end_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[end_]))) ++end_;
    at_ = end_;
    if (end_ < text_.size() && IsMark(text_[end_])) {
      ++end_;
    } else {
      while (end_ < text_.size() && !IsMark(text_[end_]) &&
             !std::isspace(static_cast<unsigned char>(text_[end_]))) {
        ++end_;
      }
    }
    word_ = text_.substr(at_, end_ - at_);
  }
  absl::Status Wrong(const std::string& wanted) const {
    return MakeError(
        {.kind = ErrorKind::kInvalidArgument, .object = absl::StrCat("character ", at_ + 1)},
        absl::StrCat(wanted, " is wanted, not ",
                     word_.empty() ? "the end" : absl::StrCat("'", word_, "'")));
  }

 private:
  const std::string& text_;
  std::size_t at_ = 0, end_ = 0;
  std::string word_;
};

class Parser {
 public:
  explicit Parser(const std::string& text) : words_(text) {}

  absl::StatusOr<CyclePlan> Whole() {
    HOLDFAST_ASSIGN_OR_RETURN(CyclePlan plan, Plan(0));
    if (!words_.word().empty()) return words_.Wrong("';' or the end");
    return plan;
  }

 private:
  absl::StatusOr<CyclePlan> Plan(int depth) {
    CyclePlan plan;
    for (;;) {
      HOLDFAST_RETURN_IF_ERROR(Step(plan, depth));
      if (!words_.Is(";")) return plan;
      words_.Next();
    }
  }

  absl::Status Step(CyclePlan& plan, int depth) {
    if (words_.Is("repeat")) return Repeat(plan, depth);
    if (words_.Is("scribble")) {
      words_.Next();
      plan.Scribble();
      return absl::OkStatus();
    }
    if (words_.Is("run")) return Run(plan);
    std::uint64_t fail_at = 0;
    if (words_.Is("fail-at")) {
      words_.Next();
      HOLDFAST_ASSIGN_OR_RETURN(fail_at, Number(1, UINT64_MAX));
    }
    const bool sleep = words_.Is("sleep");
    if (!sleep && !words_.Is("wake")) {
      return words_.Wrong(fail_at > 0 ? "sleep or wake"
                                      : "sleep, wake, fail-at, run, scribble or repeat");
    }
    words_.Next();
    HOLDFAST_ASSIGN_OR_RETURN(std::vector<std::string> tags, Tags());
    if (sleep) {
      plan.Sleep(std::move(tags));
    } else {
      plan.Wake(std::move(tags));
    }
    plan.FailingAt(fail_at);
    return absl::OkStatus();
  }

  absl::Status Run(CyclePlan& plan) {
    words_.Next();
    std::optional<std::uint64_t> seed;
    if (!AtStepsEnd()) {
      HOLDFAST_ASSIGN_OR_RETURN(seed, Number(0, UINT64_MAX));
    }
    plan.Run(seed);
    return absl::OkStatus();
  }

  absl::Status Repeat(CyclePlan& plan, int depth) {
    if (depth == kDeepest) return words_.Wrong("no more than 16 repeats within each other");
    words_.Next();
    HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t times, Number(1, kMostRepeats));
    if (!words_.Is("(")) return words_.Wrong("'('");
    words_.Next();
    HOLDFAST_ASSIGN_OR_RETURN(const CyclePlan body, Plan(depth + 1));
    if (!words_.Is(")")) return words_.Wrong("';' or ')'");
    if (plan.steps().size() + times * body.steps().size() > kMostSteps) {
      return words_.Wrong("a plan of at most 100000 steps");
    }
    words_.Next();
    for (std::uint64_t i = 0; i < times; ++i) plan.Append(body);
    return absl::OkStatus();
  }

  bool AtStepsEnd() const { return words_.word().empty() || words_.Is(";") || words_.Is(")"); }

  absl::StatusOr<std::uint64_t> Number(std::uint64_t least, std::uint64_t most) {
    std::uint64_t number = 0;
    if (!absl::SimpleAtoi(words_.word(), &number) || number < least || number > most) {
      return words_.Wrong(most == UINT64_MAX ? absl::StrCat("a number of at least ", least)
                                             : absl::StrCat("a number, ", least, " to ", most));
    }
    words_.Next();
    return number;
  }

  // Commas may stand apart: "a, b" and "a ,b" are two tags, too.
  absl::StatusOr<std::vector<std::string>> Tags() {
    std::string list;
    const Words start = words_;
    while (!AtStepsEnd()) {
      if (!list.empty() && list.back() != ',' && words_.word().front() != ',') {
        return words_.Wrong("',' or ';'");
      }
      list += words_.word();
      words_.Next();
    }
    if (list.empty() || list == "all") return std::vector<std::string>{};
    std::vector<std::string> tags = absl::StrSplit(list, ',');
    for (const std::string& tag : tags) {
      if (tag.empty()) return start.Wrong("a tag before and behind each ','");
      if (tag == "all") return start.Wrong("'all' alone, or tags");
    }
    return tags;
  }

  Words words_;
};

}  // namespace

absl::StatusOr<CyclePlan> CyclePlan::Parse(const std::string& text) { return Parser(text).Whole(); }

}  // namespace holdfast::testing
