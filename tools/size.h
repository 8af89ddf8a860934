// What `holdfast size` found, as text and as JSON.
#ifndef HOLDFAST_TOOLS_SIZE_H_
#define HOLDFAST_TOOLS_SIZE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/sizing/rule.h"

namespace holdfast {

struct SizeReport {
  std::string rule;
  SizingResult result;
  std::uint64_t total_bytes = 0;  // of the requests
};

// Evaluates the rule of that name; errors as FindRule and Evaluate.
absl::StatusOr<SizeReport> SizeRule(const std::string& rule,
                                    const std::vector<std::string>& arguments);

// One aligned line a request (bytes, why) and their total; or a line a figure.
std::string SizeText(const SizeReport& report);
// {"rule": ..., "total_bytes": N, "requests": [{"name": ..., "bytes": N, "why": ...}]}; a rule with
// figures has those instead.
std::string SizeJson(const SizeReport& report);

// Names of all rules with what they are, one a line; and one rule's own help, kNotFound for others.
std::string SizeRuleList();
absl::StatusOr<std::string> SizeRuleHelp(const std::string& rule);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_SIZE_H_
