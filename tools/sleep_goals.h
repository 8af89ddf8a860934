// The goals of sleep and wake as a table: which case proves which, what was measured, met or by how
// much missed. The times hold for 16 GiB on an H200 (PCIe 5 x16); the ratios anywhere.
#ifndef HOLDFAST_TOOLS_SLEEP_GOALS_H_
#define HOLDFAST_TOOLS_SLEEP_GOALS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/bench_neighbour.h"
#include "tools/bench_sleep.h"

namespace holdfast {

struct GoalRow {
  std::string item;
  std::string unit;  // "s", "x plain copy", "B per B", "B", "rounds"
  double figure = 0;
  double goal = 0;
  bool has_goal = true;   // false: for information
  bool at_least = false;  // the goal is the least; otherwise the most
  std::string note;
  bool met() const { return !has_goal || (at_least ? figure >= goal : figure <= goal); }
};

struct GoalSuiteOptions {
  double scale = 1;   // of 16 GiB; (0, 1]
  bool big = false;   // also 64 GiB kept
  int neighbour = 0;  // rounds of the neighbour proof; 0: left out
};

struct GoalSuite {
  GoalSuiteOptions options;
  // Goals are judged only where they mean something: at full scale on a GPU.
  bool judged = false;
  std::vector<GoalRow> rows;
  std::vector<SleepResult> cases;
  NeighbourResult neighbour;
  bool passed() const;  // every judged goal is met
};

// The cases of the suite; the largest of them says what device it needs.
std::vector<SleepCase> GoalCases(const GoalSuiteOptions& options);
// kInvalidArgument: --scale.
absl::StatusOr<GoalSuite> RunGoalSuite(Device& device, const GoalSuiteOptions& options);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_SLEEP_GOALS_H_
