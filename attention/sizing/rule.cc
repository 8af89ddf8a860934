#include "attention/sizing/rule.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kArgumentGrammar[] = "key=value";

template <typename T>
std::string Names(const std::vector<T>& named) {
  return absl::StrJoin(named, ", ",
                       [](std::string* out, const T& t) { absl::StrAppend(out, t.name); });
}

// Name and text of one argument.
struct Given {
  std::string name, text;
};

absl::StatusOr<Given> Split(const std::string& rule, const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0) {
    return RefuseField(rule, "argument", QuoteValue(argument), kArgumentGrammar);
  }
  return Given{argument.substr(0, equals), argument.substr(equals + 1)};
}

}  // namespace

absl::StatusOr<SizingResult> Evaluate(const SizingRule& rule,
                                      const std::vector<std::string>& arguments) {
  std::vector<std::optional<std::int64_t>> given(rule.keys.size());
  for (const std::string& argument : arguments) {
    HOLDFAST_ASSIGN_OR_RETURN(const Given one, Split(rule.name, argument));
    const auto key = std::find_if(rule.keys.begin(), rule.keys.end(),
                                  [&one](const SizingKey& k) { return k.name == one.name; });
    if (key == rule.keys.end()) {
      return RefuseField(rule.name, "key", QuoteValue(one.name),
                         absl::StrCat("one of ", Names(rule.keys)));
    }
    std::optional<std::int64_t>& value = given[static_cast<std::size_t>(key - rule.keys.begin())];
    if (value.has_value()) {
      return RefuseField(rule.name, one.name, QuoteValue(one.text),
                         absl::StrCat("given once; it was ", key->Format(*value), " before"));
    }
    HOLDFAST_ASSIGN_OR_RETURN(value, key->Parse(rule.name, one.text));
  }
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < rule.keys.size(); ++i) {
    const SizingKey& key = rule.keys[i];
    if (!given[i] && key.required) {
      return RefuseField(rule.name, key.name, "missing", key.Grammar());
    }
    values.push_back(given[i].value_or(key.default_value));
  }
  absl::StatusOr<SizingResult> result = rule.size(values);
  if (result.ok()) return result;
  const std::optional<ErrorInfo> info = GetErrorInfo(result.status());
  const bool names_rule = info.has_value() && info->object.rfind(rule.name, 0) == 0;
  // A product names only itself.
  return names_rule ? result.status() : Annotate(result.status(), rule.name);
}

absl::StatusOr<SizingRule> FindRule(const std::vector<SizingRule>& rules, const std::string& name) {
  for (const SizingRule& rule : rules) {
    if (rule.name == name) return rule;
  }
  return MakeError(
      {.kind = ErrorKind::kNotFound, .object = absl::StrCat("rule ", QuoteValue(name))},
      absl::StrCat("there are ", Names(rules)));
}

std::string RuleHelp(const SizingRule& rule) {
  std::string help = absl::StrFormat("%s: %s\n\n%s\n\nkeys:\n", rule.name, rule.doc, rule.formula);
  std::size_t width = 0;
  for (const SizingKey& key : rule.keys) width = std::max(width, key.name.size());
  for (const SizingKey& key : rule.keys) {
    absl::StrAppendFormat(
        &help, "  %-*s  %s; %s\n  %-*s  %s\n", static_cast<int>(width), key.name, key.Grammar(),
        key.required ? "required" : absl::StrCat("default ", key.Format(key.default_value)),
        static_cast<int>(width), "", key.doc);
  }
  help += "\nJSON: {\"rule\": \"" + rule.name + "\", ";
  if (rule.figures.empty()) {
    help += "\"total_bytes\": N, \"requests\": [{\"name\": ..., \"bytes\": N, \"why\": ...}]}\n";
    return help;
  }
  help += absl::StrJoin(rule.figures, ", ", [](std::string* out, const auto& figure) {
    absl::StrAppend(out, "\"", figure.first, "\": ...");
  });
  help += "}\n";
  for (const auto& [name, meaning] : rule.figures) {
    absl::StrAppendFormat(&help, "  %s: %s\n", name, meaning);
  }
  return help;
}

}  // namespace holdfast
