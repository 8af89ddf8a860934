#include <nlohmann/json.hpp>

#include "tools/sleep_report.h"

namespace holdfast {
namespace {

using nlohmann::json;

json TransitionJson(const TimedTransition& t, double plain, std::uint64_t bytes) {
  json row = {{"seconds", t.seconds},
              {"seconds_by_stage", t.report.seconds_by_stage},
              {"freed_bytes", t.report.freed_bytes},
              {"bytes", bytes}};
  if (plain > 0) row["times_plain_copy"] = t.seconds / plain;
  for (const TagTransition& tag : t.report.tags) {
    row["kept_bytes"] = tag.kept_bytes;
    row["clean_bytes"] = tag.clean_bytes;
    row["dropped_bytes"] = tag.dropped_bytes;
  }
  return row;
}

json AskedJson(const SleepCase& c) {
  return {{"bytes", c.arena.kept_bytes},
          {"cache_bytes", c.arena.dropped_bytes},
          {"chunk_bytes", c.arena.chunk_bytes},
          {"spans", c.arena.spans},
          {"sealed", c.arena.sealed},
          {"verify", c.arena.residency.verify},
          {"detect", c.arena.residency.detect_unchanged},
          {"pool", PoolChoiceName(c.pool)},
          {"through_pool", c.through_pool},
          {"host_memory", c.warm_host ? "warm" : "cold"},
          {"changed", c.changed},
          {"pause_seconds", c.pause_seconds},
          {"cycles", c.cycles}};
}

json ResultJson(const SleepResult& r) {
  json cycles = json::array();
  const std::uint64_t dropped = r.asked.arena.dropped_bytes;
  for (const SleepCycle& c : r.cycles) {
    json row = {{"kept_sleep", TransitionJson(c.kept_sleep, r.plain.out_seconds, r.kept_bytes)},
                {"kept_wake", TransitionJson(c.kept_wake, r.plain.in_seconds, r.kept_bytes)}};
    if (dropped > 0) {
      row["dropped_sleep"] = TransitionJson(c.dropped_sleep, 0, dropped);
      row["dropped_wake"] = TransitionJson(c.dropped_wake, 0, dropped);
    }
    cycles.push_back(row);
  }
  return {{"name", r.asked.name},
          {"asked", AskedJson(r.asked)},
          {"kept_bytes", r.kept_bytes},
          {"mapped_kept_bytes", r.mapped_kept_bytes},
          {"backing_bytes", r.backing_bytes},
          {"host_bytes_per_kept_byte",
           static_cast<double>(r.backing_bytes) / static_cast<double>(r.kept_bytes)},
          {"prepare_seconds", r.prepare_seconds},
          {"plain_copy",
           {{"bytes", r.plain.bytes},
            {"out_seconds", r.plain.out_seconds},
            {"in_seconds", r.plain.in_seconds}}},
          {"first_sleep_seconds", r.first_sleep()},
          {"later_sleep_seconds", r.later_sleep()},
          {"wake_seconds", r.wake()},
          {"dropped_sleep_seconds", r.dropped_sleep()},
          {"dropped_wake_seconds", r.dropped_wake()},
          {"dropped_wake_fill_seconds", r.dropped_wake_fill()},
          {"own_bytes_asleep", r.own_bytes_asleep},
          {"process_growth_bytes", r.process_growth_bytes},
          {"cycles", cycles}};
}

json FrameJson(const DeviceInfo& device, const char* name) {
  return {{"name", name},
          {"version", HOLDFAST_VERSION},
          {"device", device.name},
          {"driver", device.driver}};
}

json NeighbourRow(const NeighbourResult& r) {
  return {{"skipped", r.skipped},
          {"rounds", r.rounds},
          {"granted", r.granted},
          {"taken_bytes", r.taken_bytes},
          {"filled_bytes", r.filled_bytes},
          {"slack_bytes", r.slack_bytes},
          {"refusal", r.refusal}};
}

std::string Text(const json& document) {
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string SleepJson(const DeviceInfo& device, const SleepResult& result) {
  json document = FrameJson(device, "holdfast bench sleep");
  document["case"] = ResultJson(result);
  return Text(document);
}

std::string GoalJson(const DeviceInfo& device, const GoalSuite& suite) {
  json document = FrameJson(device, "holdfast bench sleep --suite goals");
  json rows = json::array(), cases = json::array();
  for (const GoalRow& row : suite.rows) {
    json line = {{"item", row.item}, {"unit", row.unit}, {"figure", row.figure},
                 {"note", row.note}, {"goal", nullptr},  {"met", nullptr}};
    if (row.has_goal) line["goal"] = row.goal;
    if (row.has_goal && suite.judged) line["met"] = row.met();
    rows.push_back(line);
  }
  for (const SleepResult& result : suite.cases) cases.push_back(ResultJson(result));
  document["scale"] = suite.options.scale;
  document["judged"] = suite.judged;
  document["rows"] = rows;
  document["cases"] = cases;
  document["neighbour"] = NeighbourRow(suite.neighbour);
  document["pass"] = suite.passed();
  return Text(document);
}

std::string NeighbourJson(const DeviceInfo& device, const NeighbourResult& result) {
  json document = FrameJson(device, "holdfast bench sleep --neighbour");
  document["neighbour"] = NeighbourRow(result);
  return Text(document);
}

}  // namespace holdfast
