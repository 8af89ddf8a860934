// What `holdfast bench sleep` found, as text and as JSON.
#ifndef HOLDFAST_TOOLS_SLEEP_REPORT_H_
#define HOLDFAST_TOOLS_SLEEP_REPORT_H_

#include <string>

#include "tools/bench_neighbour.h"
#include "tools/bench_sleep.h"
#include "tools/sleep_goals.h"

namespace holdfast {

std::string SleepText(const DeviceInfo& device, const SleepResult& result);
std::string SleepJson(const DeviceInfo& device, const SleepResult& result);
std::string GoalText(const DeviceInfo& device, const GoalSuite& suite);
std::string GoalJson(const DeviceInfo& device, const GoalSuite& suite);
// One line; JSON with a line break.
std::string NeighbourText(const NeighbourResult& result);
std::string NeighbourJson(const DeviceInfo& device, const NeighbourResult& result);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_SLEEP_REPORT_H_
