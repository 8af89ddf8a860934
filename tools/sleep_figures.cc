// The figures that a case's cycles amount to.
#include <algorithm>
#include <vector>

#include "tools/bench_sleep.h"

namespace holdfast {
namespace {

// 0 for nothing.
double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <typename Figure>
double MedianOver(const std::vector<SleepCycle>& cycles, std::size_t from, Figure figure) {
  std::vector<double> values;
  for (std::size_t i = from; i < cycles.size(); ++i) values.push_back(figure(cycles[i]));
  return Median(std::move(values));
}

}  // namespace

const char* PoolChoiceName(PoolChoice choice) {
  switch (choice) {
    case PoolChoice::kNone: return "none";
    case PoolChoice::kPrepared: return "prepared";
    case PoolChoice::kBackground: return "background";
  }
  return "?";
}

double TimedTransition::StageSeconds(const std::string& stage) const {
  const auto found = report.seconds_by_stage.find(stage);
  return found == report.seconds_by_stage.end() ? 0 : found->second;
}

double SleepResult::later_sleep() const {
  return MedianOver(cycles, 1, [](const SleepCycle& c) { return c.kept_sleep.seconds; });
}
double SleepResult::wake() const {
  return MedianOver(cycles, 0, [](const SleepCycle& c) { return c.kept_wake.seconds; });
}
double SleepResult::dropped_sleep() const {
  return MedianOver(cycles, 0, [](const SleepCycle& c) { return c.dropped_sleep.seconds; });
}
double SleepResult::dropped_wake() const {
  return MedianOver(cycles, 0, [](const SleepCycle& c) {
    return c.dropped_wake.seconds - c.dropped_wake.StageSeconds("fill");
  });
}
double SleepResult::dropped_wake_fill() const {
  return MedianOver(cycles, 0,
                    [](const SleepCycle& c) { return c.dropped_wake.StageSeconds("fill"); });
}

}  // namespace holdfast
