#include "testing/result_line.h"

#include <nlohmann/json.hpp>

#include "device/error.h"

namespace holdfast::testing {
namespace {

using Json = nlohmann::json;

absl::Status Broken(const char* what) {
  return MakeError({.kind = ErrorKind::kCorrupted, .object = "worker's event"}, what);
}

// The value of a key if it is there and of the type; else the default.
std::string Text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}
std::int64_t Number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
}
double Seconds(const Json& json) {
  const auto found = json.find("seconds");
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}
bool Flag(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

std::optional<ControlResult> ControlOf(const Json& json) {
  const std::optional<Fault> fault = FaultOfName(Text(json, "name"));
  if (!fault.has_value()) return std::nullopt;
  for (const NegativeControl& control : AllControls()) {
    if (control.fault != *fault) continue;
    return ControlResult{.control = control,
                         .bites = Flag(json, "bites"),
                         .skipped = Flag(json, "skipped"),
                         .detail = Text(json, "detail"),
                         .seconds = Seconds(json)};
  }
  return std::nullopt;
}

std::optional<ProofResult> ProofOf(const Json& json) {
  const std::optional<Proof> proof = ProofOfName(Text(json, "name"));
  const std::int64_t verdict = Number(json, "verdict");
  if (!proof.has_value() || verdict < 0 || verdict > static_cast<std::int64_t>(Verdict::kSkipped)) {
    return std::nullopt;
  }
  return ProofResult{.proof = *proof,
                     .verdict = static_cast<Verdict>(verdict),
                     .detail = Text(json, "detail"),
                     .blocked_by = ProofOfName(Text(json, "blocked_by")),
                     .seconds = Seconds(json)};
}

}  // namespace

std::string WriteEvent(const WorkerEvent& event) {
  Json json = {{"kind", static_cast<int>(event.kind)}, {"text", event.text}};
  if (event.proof.has_value()) {
    const ProofResult& p = *event.proof;
    json["name"] = p.name();
    json["verdict"] = static_cast<int>(p.verdict);
    json["detail"] = p.detail;
    json["blocked_by"] = p.blocked_by.has_value() ? ProofName(*p.blocked_by) : "";
    json["seconds"] = p.seconds;
  }
  if (event.control.has_value()) {
    const ControlResult& c = *event.control;
    json["name"] = c.name();
    json["bites"] = c.bites;
    json["skipped"] = c.skipped;
    json["detail"] = c.detail;
    json["seconds"] = c.seconds;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<WorkerEvent> ReadEvent(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Broken("not an object");
  const std::int64_t kind = Number(json, "kind");
  if (kind < 0 || kind > static_cast<std::int64_t>(WorkerEvent::Kind::kDone)) {
    return Broken("of no known kind");
  }
  WorkerEvent event{.kind = static_cast<WorkerEvent::Kind>(kind), .text = Text(json, "text")};
  if (event.kind == WorkerEvent::Kind::kProof) {
    event.proof = ProofOf(json);
    if (!event.proof.has_value()) return Broken("a proof that does not exist");
  }
  if (event.kind == WorkerEvent::Kind::kControl) {
    event.control = ControlOf(json);
    if (!event.control.has_value()) return Broken("a negative control that does not exist");
  }
  return event;
}

}  // namespace holdfast::testing
