#include <nlohmann/json.hpp>

#include "testing/report.h"
#include "testing/result_line.h"

namespace holdfast::testing {

std::string ReportJson(const BatteryReport& report) {
  using Json = nlohmann::ordered_json;
  const std::vector<std::string> complaints = report.complaints();
  Json proofs = Json::array();
  for (const ProofResult& result : report.proofs) {
    Json entry = {{"name", result.name()},
                  {"meaning", ProofMeaning(result.proof)},
                  {"verdict", VerdictName(result.verdict)},
                  {"detail", result.detail},
                  {"seconds", result.seconds}};
    if (result.blocked_by.has_value()) entry["blocked_by"] = ProofName(*result.blocked_by);
    proofs.push_back(std::move(entry));
  }
  Json controls = Json::array();
  for (const ControlResult& result : report.controls) {
    controls.push_back({{"name", result.name()},
                        {"aimed_at", ProofName(result.control.aimed)},
                        {"verdict", ControlVerdict(result)},
                        {"detail", result.detail},
                        {"seconds", result.seconds}});
  }
  const Json json = {{"version", HOLDFAST_VERSION},    {"subject", report.subject},
                     {"device", report.device},        {"seed", report.seed},
                     {"seconds", report.seconds},      {"passed", complaints.empty()},
                     {"complaints", complaints},       {"proofs", std::move(proofs)},
                     {"controls", std::move(controls)}};
  // What a plug-in says need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace holdfast::testing
