// A planned start, as text and as JSON.
#ifndef HOLDFAST_TOOLS_PLAN_REPORT_H_
#define HOLDFAST_TOOLS_PLAN_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/kv_plan.h"
#include "runtime/start_plan.h"

namespace holdfast {

// A row an owner: planned bytes, what they would hold as KV tokens, and what was measured beside
// them where it was.
std::string StartPlanText(const StartPlan& plan);
// Both plans, and for each owner what the second takes more.
std::string PlanDifferenceText(const StartPlan& plan, const StartPlan& against);
nlohmann::json StartPlanJson(const StartPlan& plan);

// How many pages the measured and the classic order give, a line each.
std::string KvOrdersText(const KvPlan& kv);
nlohmann::json KvPlanJson(const KvPlan& kv);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_PLAN_REPORT_H_
