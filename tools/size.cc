#include "tools/size.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "device/bytes.h"
#include "device/error.h"
#include "runtime/sizing_rules.h"

namespace holdfast {
namespace {

// Columns side by side, each as wide as its widest cell.
std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += absl::StrFormat("  %-*s", static_cast<int>(widths[i]), row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string FigureText(const SizingFigure& figure) {
  if (!figure.is_bytes) return absl::StrJoin(figure.values, " ");
  const std::int64_t value = figure.values.front();
  return value < 0 ? "-" + FormatBytes(static_cast<std::uint64_t>(-value))
                   : FormatBytes(static_cast<std::uint64_t>(value));
}

}  // namespace

absl::StatusOr<SizeReport> SizeRule(const std::string& rule,
                                    const std::vector<std::string>& arguments) {
  HOLDFAST_ASSIGN_OR_RETURN(const SizingRule found, FindRule(AllSizingRules(), rule));
  SizeReport report{.rule = rule};
  HOLDFAST_ASSIGN_OR_RETURN(report.result, Evaluate(found, arguments));
  HOLDFAST_ASSIGN_OR_RETURN(report.total_bytes, TotalBytes(report.result.requests));
  return report;
}

std::string SizeText(const SizeReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const SizingFigure& figure : report.result.figures) {
    rows.push_back({figure.name, FigureText(figure)});
  }
  if (report.result.figures.empty()) {
    for (const DeclaredRequest& request : report.result.requests) {
      rows.push_back({request.name, FormatBytes(request.bytes), request.why});
    }
    rows.push_back({"total", FormatBytes(report.total_bytes)});
  }
  return report.rule + "\n" + Table(rows);
}

std::string SizeJson(const SizeReport& report) {
  nlohmann::ordered_json json = {{"rule", report.rule}};
  for (const SizingFigure& figure : report.result.figures) {
    if (figure.is_list) {
      json[figure.name] = figure.values;
    } else {
      json[figure.name] = figure.values.front();
    }
  }
  if (report.result.figures.empty()) {
    json["total_bytes"] = report.total_bytes;
    json["requests"] = nlohmann::ordered_json::array();
    for (const DeclaredRequest& request : report.result.requests) {
      json["requests"].push_back(
          {{"name", request.name}, {"bytes", request.bytes}, {"why", request.why}});
    }
  }
  return json.dump(2) + "\n";
}

std::string SizeRuleList() {
  std::vector<std::vector<std::string>> rows;
  for (const SizingRule& rule : AllSizingRules()) rows.push_back({rule.name, rule.doc});
  return Table(rows);
}

absl::StatusOr<std::string> SizeRuleHelp(const std::string& rule) {
  HOLDFAST_ASSIGN_OR_RETURN(const SizingRule found, FindRule(AllSizingRules(), rule));
  return RuleHelp(found);
}

}  // namespace holdfast
