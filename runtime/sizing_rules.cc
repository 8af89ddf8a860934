#include "runtime/sizing_rules.h"

#include <algorithm>

#include "runtime/capture_sizes.h"
#include "runtime/kv_sizing.h"

namespace holdfast {

std::vector<SizingRule> AllSizingRules() {
  std::vector<SizingRule> rules = AttentionSizingRules();
  rules.push_back(CaptureSizesRule());
  rules.push_back(KvPlanRule());
  std::sort(rules.begin(), rules.end(),
            [](const SizingRule& a, const SizingRule& b) { return a.name < b.name; });
  return rules;
}

}  // namespace holdfast
