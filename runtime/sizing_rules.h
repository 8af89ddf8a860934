// Every sizing rule there is: those of attention, and those that need what only the runtime knows.
#ifndef HOLDFAST_RUNTIME_SIZING_RULES_H_
#define HOLDFAST_RUNTIME_SIZING_RULES_H_

#include <vector>

#include "attention/sizing/rule.h"

namespace holdfast {

std::vector<SizingRule> AllSizingRules();  // sorted by name

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_SIZING_RULES_H_
