#include "tools/plan_report.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "device/bytes.h"

namespace holdfast {
namespace {

std::string SignedBytes(std::int64_t bytes) {
  return bytes < 0 ? "-" + FormatBytes(static_cast<std::uint64_t>(-bytes))
                   : FormatBytes(static_cast<std::uint64_t>(bytes));
}

std::int64_t SignedTokens(const StartPlan& plan, std::int64_t bytes) {
  const std::int64_t tokens = plan.TokensOf(static_cast<std::uint64_t>(std::abs(bytes)));
  return bytes < 0 ? -tokens : tokens;
}

std::uint64_t PlannedOf(const StartPlan& plan, const std::string& owner) {
  const PlanLine* line = plan.Find(owner);
  return line == nullptr ? 0 : line->planned_bytes;
}

bool Measured(const StartPlan& plan) {
  return std::any_of(plan.lines.begin(), plan.lines.end(),
                     [](const PlanLine& line) { return line.measured_bytes.has_value(); });
}

// The owners of both, in the order of the first.
std::vector<std::string> Owners(const StartPlan& plan, const StartPlan& against) {
  std::vector<std::string> owners;
  for (const StartPlan* from : {&plan, &against}) {
    for (const PlanLine& line : from->lines) {
      if (std::find(owners.begin(), owners.end(), line.owner) == owners.end()) {
        owners.push_back(line.owner);
      }
    }
  }
  return owners;
}

std::string CacheText(const StartPlan& plan) {
  std::string out =
      absl::StrFormat("KV cache: %d of %d pages of %d tokens, %d tokens\n", plan.kv.pages,
                      plan.kv.most_pages, plan.kv.page_tokens, plan.kv.tokens());
  if (!plan.kv_refusal.empty()) absl::StrAppend(&out, "would not start: ", plan.kv_refusal, "\n");
  return out;
}

}  // namespace

std::string StartPlanText(const StartPlan& plan) {
  const bool measured = Measured(plan);
  std::string out = absl::StrFormat("%-22s %24s %14s", "planned by owner", "bytes", "KV tokens");
  out += measured ? absl::StrFormat(" %24s\n", "measured") : "  why\n";
  for (const PlanLine& line : plan.lines) {
    absl::StrAppendFormat(&out, "%-22s %24s %14d", line.owner, FormatBytes(line.planned_bytes),
                          plan.TokensOf(line.planned_bytes));
    if (measured) {
      absl::StrAppendFormat(&out, " %24s%s\n", SignedBytes(line.measured_bytes.value_or(0)),
                            line.holds(plan.device.granularity) ? "" : "  OFF");
    } else {
      absl::StrAppend(&out, "  ", line.why, "\n");
    }
  }
  const std::uint64_t all = plan.planned_bytes();
  absl::StrAppendFormat(&out, "%-22s %24s %14d\n", "all", FormatBytes(all), plan.TokensOf(all));
  absl::StrAppendFormat(&out, "%-22s %24s\n", "budget", FormatBytes(plan.kv.budget_bytes));
  absl::StrAppendFormat(&out, "%-22s %24s\n", "device", FormatBytes(plan.device.capacity_bytes));
  return out + CacheText(plan);
}

std::string PlanDifferenceText(const StartPlan& plan, const StartPlan& against) {
  std::string out = absl::StrFormat("%-22s %24s %24s %24s %14s\n", "planned by owner", "bytes",
                                    "against", "more", "KV tokens");
  const auto row = [&](const std::string& owner, std::uint64_t first, std::uint64_t second) {
    const std::int64_t more = static_cast<std::int64_t>(second) - static_cast<std::int64_t>(first);
    absl::StrAppendFormat(&out, "%-22s %24s %24s %24s %14d\n", owner, FormatBytes(first),
                          FormatBytes(second), SignedBytes(more), SignedTokens(plan, more));
  };
  for (const std::string& owner : Owners(plan, against)) {
    row(owner, PlannedOf(plan, owner), PlannedOf(against, owner));
  }
  row("all", plan.planned_bytes(), against.planned_bytes());
  absl::StrAppendFormat(&out, "%-22s %24d %24d %24d\n", "KV tokens", plan.kv.tokens(),
                        against.kv.tokens(), against.kv.tokens() - plan.kv.tokens());
  return out + CacheText(plan) + "against: " + CacheText(against);
}

nlohmann::json StartPlanJson(const StartPlan& plan) {
  nlohmann::json lines = nlohmann::json::array();
  for (const PlanLine& line : plan.lines) {
    nlohmann::json one = {{"owner", line.owner},
                          {"kind", line.kind == PlanKind::kArena ? "arena" : "driver"},
                          {"planned_bytes", line.planned_bytes},
                          {"kv_tokens", plan.TokensOf(line.planned_bytes)},
                          {"why", line.why}};
    if (line.measured_bytes.has_value()) {
      one["measured_bytes"] = *line.measured_bytes;
      one["holds"] = line.holds(plan.device.granularity);
    }
    lines.push_back(std::move(one));
  }
  return {{"device", plan.device.name},
          {"capacity_bytes", plan.device.capacity_bytes},
          {"granularity", plan.device.granularity},
          {"operations", plan.operations},
          {"lines", lines},
          {"planned_bytes", plan.planned_bytes()},
          {"kv", KvPlanJson(plan.kv)},
          {"starts", plan.kv_refusal.empty()},
          {"refusal", plan.kv_refusal},
          {"holds", plan.holds()}};
}

std::string KvOrdersText(const KvPlan& kv) {
  std::string out = absl::StrFormat(
      "KV cache: %d of %d pages of %d tokens; %d hold the longest "
      "sequence\n",
      kv.pages, kv.most_pages, kv.page_tokens, kv.needed_pages);
  absl::StrAppendFormat(&out, "  measured order: %s for it, %d pages\n",
                        SignedBytes(kv.measured.available_bytes), kv.measured.pages);
  if (!kv.classic_refusal.empty()) {
    absl::StrAppendFormat(&out, "  classic order: would not start: %s\n", kv.classic_refusal);
  } else {
    absl::StrAppendFormat(&out,
                          "  classic order: %s for it, %d pages (executables guessed at %s)\n",
                          SignedBytes(kv.classic.available_bytes), kv.classic.pages,
                          FormatBytes(kv.estimated_executable_bytes));
  }
  return out;
}

nlohmann::json KvPlanJson(const KvPlan& kv) {
  return {{"pages", kv.pages},
          {"most_pages", kv.most_pages},
          {"needed_pages", kv.needed_pages},
          {"page_tokens", kv.page_tokens},
          {"page_bytes", kv.page_bytes},
          {"budget_bytes", kv.budget_bytes},
          {"used_bytes", kv.used_bytes},
          {"headroom_bytes", kv.headroom_bytes},
          {"own_bytes", kv.own_bytes},
          {"measured",
           {{"available_bytes", kv.measured.available_bytes}, {"pages", kv.measured.pages}}},
          {"classic",
           {{"available_bytes", kv.classic.available_bytes},
            {"pages", kv.classic.pages},
            {"used_bytes", kv.estimated_used_bytes},
            {"transient_bytes", kv.estimated_transient_bytes},
            {"executable_bytes", kv.estimated_executable_bytes},
            {"refusal", kv.classic_refusal}}}};
}

}  // namespace holdfast
