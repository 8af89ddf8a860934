// A sizing rule: a name, documented keys, and the function from keys to bytes.
#ifndef HOLDFAST_ATTENTION_SIZING_RULE_H_
#define HOLDFAST_ATTENTION_SIZING_RULE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/declaration.h"
#include "attention/sizing/key.h"

namespace holdfast {

// A figure of a rule that does not size requests: one number, or a list.
struct SizingFigure {
  std::string name;
  std::vector<std::int64_t> values;
  bool is_list = false;
  bool is_bytes = false;
};

struct SizingResult {
  std::vector<DeclaredRequest> requests;
  std::vector<SizingFigure> figures;  // instead of requests, as the rule's `figures` documents them
};

struct SizingRule {
  std::string name;
  std::string doc;      // one line
  std::string formula;  // as --help shows it
  std::vector<SizingKey> keys;
  std::vector<std::pair<std::string, std::string>> figures;  // name, meaning; empty: requests
  // Values in the order of `keys`, in range.
  std::function<absl::StatusOr<SizingResult>(const std::vector<std::int64_t>& values)> size;
};

// Evaluates a rule for arguments "key=value". kInvalidArgument with object "<rule> <key>", naming
// value and grammar, for an argument without '=', an unknown, repeated or missing key, a value out
// of its grammar or range, or a product beyond 64 bits.
absl::StatusOr<SizingResult> Evaluate(const SizingRule& rule,
                                      const std::vector<std::string>& arguments);

// The rule of that name; kNotFound naming all of them.
absl::StatusOr<SizingRule> FindRule(const std::vector<SizingRule>& rules, const std::string& name);

// What `holdfast size --help RULE` prints: formula, keys with grammar and default, output.
std::string RuleHelp(const SizingRule& rule);

// The rules of this folder, sorted by name. The runtime adds its own.
std::vector<SizingRule> AttentionSizingRules();

// Binds a function of a rule's struct to its table.
template <typename Keys, typename Function>
SizingRule MakeRule(SizingRule rule, const KeyTable<Keys>& table, Function function) {
  for (const BoundKey<Keys>& bound : table) rule.keys.push_back(bound.key);
  rule.size = [table, function](const std::vector<std::int64_t>& values) {
    Keys keys;
    for (std::size_t i = 0; i < table.size(); ++i) keys.*table[i].member = values[i];
    return function(keys);
  };
  return rule;
}

// The same for a function that sizes requests.
template <typename Keys>
SizingRule MakeRequestRule(
    SizingRule rule, const KeyTable<Keys>& table,
    absl::StatusOr<std::vector<DeclaredRequest>> (*function)(const Keys& keys)) {
  return MakeRule(std::move(rule), table, [function](const Keys& keys) {
    absl::StatusOr<std::vector<DeclaredRequest>> requests = function(keys);
    if (!requests.ok()) return absl::StatusOr<SizingResult>(requests.status());
    return absl::StatusOr<SizingResult>(SizingResult{.requests = *std::move(requests)});
  });
}

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_RULE_H_
