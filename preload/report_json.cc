#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "graphs/node_words.h"
#include "preload/report.h"

namespace holdfast::preload {
namespace {

using Json = nlohmann::ordered_json;

std::string Program() {
  std::string path(4096, '\0');
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return path;
}

Json Describe(const Allocation& allocation) {
  return {{"id", allocation.id},
          {"call", allocation.call},
          {"name", allocation.name},
          {"address", HexWord(allocation.range.base.value)},
          {"bytes", allocation.range.bytes},
          {"label", allocation.Label()},
          {"freed_by", allocation.freed_by}};
}

Json Describe(const Account::Entry& entry) {
  const Finding& finding = entry.finding;
  Json references = Json::array();
  for (const Reference& reference : finding.references) {
    references.push_back({{"node", reference.node},
                          {"name", *reference.node_name},
                          {"where", reference.where},
                          {"word", HexWord(reference.word)},
                          {"offset", reference.word - finding.allocation->range.base.value}});
  }
  Json json = {{"kind", FindingKind(entry)},
               {"graph", absl::StrCat("graph ", finding.graph)},
               {"when", FaultText(finding.fault)},
               {"allocation", Describe(*finding.allocation)},
               {"pool_destroyed", finding.allocation->pool_gone},
               {"words", finding.words},
               {"references", std::move(references)},
               {"text", FindingText(entry)}};
  const AllocationPtr& heir = finding.allocation->heir;
  json["outgrown_by"] = heir != nullptr ? Describe(*heir) : Json(nullptr);
  json["reallocated_as"] = entry.owner != nullptr ? Describe(*entry.owner) : Json(nullptr);
  return json;
}

Json Describe(const GraphFacts& graph) {
  return {{"name", absl::StrCat("graph ", graph.number)},
          {"captured", graph.capture.number != 0},
          {"capture", graph.capture.number},
          {"instantiated", graph.exec != 0},
          {"alive", graph.alive},
          {"nodes", graph.nodes},
          {"words", graph.words},
          {"pointers", graph.pointers},
          {"pointers_not_recorded", graph.unrecorded},
          {"updates", graph.updates},
          {"changes_of_single_nodes", graph.changed_node_by_node},
          {"unreadable_nodes", graph.unreadable}};
}

template <typename Items>
Json List(const Items& items) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(Describe(item));
  return list;
}

}  // namespace

std::string ReportJson(const Account& account) {
  const Json json = {{"format", kReportFormat},
                     {"version", kReportVersion},
                     {"program", Program()},
                     {"pid", getpid()},
                     {"driver", account.driver},
                     {"recording", account.settings.record},
                     {"allocations", account.allocations},
                     {"graphs", List(account.graphs)},
                     {"findings", List(account.findings)},
                     {"remapped", List(account.remapped)},
                     {"open_captures", account.open_captures},
                     {"contexts_destroyed", account.contexts_destroyed},
                     {"errors", account.errors},
                     {"text", ReportText(account)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace holdfast::preload
