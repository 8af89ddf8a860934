// A plan of sleeps, wakes, failures and runs, by tag; as text, or step by step.
//
//   sleep all; wake weights; fail-at 3 wake; wake all; run 7
//
//   plan  = step { ";" step }
//   step  = [ "fail-at" K ] ( "sleep" tags | "wake" tags )     K >= 1: its K-th device call fails
//         | "run" [ SEED ]                                     inputs of SEED; the driver's if none
//         | "scribble"                                         what is asleep is written over
//         | "repeat" N "(" plan ")"                            1 <= N <= 1000
//   tags  = [ "all" | tag { "," tag } ]                        nothing: all
//
// A tag is anything without spaces, commas, semicolons and parentheses. Equal plans give equal
// text.
#ifndef HOLDFAST_TESTING_CYCLE_PLAN_H_
#define HOLDFAST_TESTING_CYCLE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast::testing {

struct CycleStep {
  enum class Kind { kSleep, kWake, kRun, kScribble };
  Kind kind = Kind::kRun;
  std::vector<std::string> tags;      // sleep, wake; empty: all
  std::uint64_t fail_at = 0;          // sleep, wake; 0: nothing fails
  std::optional<std::uint64_t> seed;  // run

  bool operator==(const CycleStep&) const = default;
  std::string Text() const;  // "fail-at 3 wake weights,state"
};

class CyclePlan {
 public:
  CyclePlan() = default;
  // kInvalidArgument naming the place ("character 12") and what stands there; more than 100000
  // steps are refused.
  static absl::StatusOr<CyclePlan> Parse(const std::string& text);
  // `steps` sleeps, wakes, runs and failures that depend on the seed alone. Everything is awake at
  // the end. `tags` as the arena has them; more than none.
  static CyclePlan Random(std::uint64_t seed, const std::vector<std::string>& tags, int steps);

  CyclePlan& Sleep(std::vector<std::string> tags = {});
  CyclePlan& Wake(std::vector<std::string> tags = {});
  CyclePlan& Run(std::optional<std::uint64_t> seed = {});
  CyclePlan& Scribble();
  // The last step's k-th device call fails. It must be a sleep or a wake; k >= 1.
  CyclePlan& FailingAt(std::uint64_t k);
  CyclePlan& Append(const CyclePlan& other);

  const std::vector<CycleStep>& steps() const { return steps_; }
  std::string Text() const;  // what Parse takes; repeats are written out
  bool operator==(const CyclePlan&) const = default;

 private:
  std::vector<CycleStep> steps_;
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_CYCLE_PLAN_H_
