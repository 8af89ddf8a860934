#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "device/bytes.h"
#include "tools/sleep_report.h"

namespace holdfast {
namespace {

std::string Stages(const TimedTransition& t) {
  std::vector<std::string> parts;
  for (const auto& [stage, seconds] : t.report.seconds_by_stage) {
    parts.push_back(absl::StrFormat("%s %.2f", stage, seconds * 1e3));
  }
  return absl::StrJoin(parts, ", ");
}

// "  kept sleep     312.4 ms  1.01 x plain   55.0 GB/s  (copy 300.1, ...)"
void AppendRow(std::string* out, const std::string& what, const TimedTransition& t, double plain,
               std::uint64_t bytes) {
  const std::string ratio =
      plain > 0 ? absl::StrFormat("%.3f x plain", t.seconds / plain) : std::string();
  absl::StrAppendFormat(
      out, "  %-14s %9.2f ms  %-15s %7.1f GB/s  (ms: %s)\n", what, t.seconds * 1e3, ratio,
      t.seconds > 0 ? static_cast<double>(bytes) / t.seconds / 1e9 : 0, Stages(t));
}

std::string Heading(const DeviceInfo& device) {
  return absl::StrFormat("holdfast bench sleep on %s (driver %s)\n", device.name, device.driver);
}

std::string Figure(const GoalRow& row, double value) {
  if (row.unit == "s") return absl::StrFormat("%.4f s", value);
  if (row.unit == "B" || row.unit == "rounds") return absl::StrFormat("%.0f %s", value, row.unit);
  return absl::StrFormat("%.3f %s", value, row.unit);
}

std::string Verdict(const GoalRow& row, bool judged) {
  if (!row.has_goal) return "no goal";
  if (!judged) return "not judged";
  if (row.met()) return "met";
  return absl::StrCat("MISSED by ",
                      Figure(row, row.at_least ? row.goal - row.figure : row.figure - row.goal));
}

}  // namespace

std::string SleepText(const DeviceInfo& device, const SleepResult& r) {
  const BenchArenaOptions& arena = r.asked.arena;
  std::string out = Heading(device);
  absl::StrAppendFormat(
      &out, "kept %s in %d spans (%s mapped), dropped %s, chunks of %s, %s, pool %s, verify %s\n",
      FormatBytes(r.kept_bytes), arena.spans, FormatBytes(r.mapped_kept_bytes),
      FormatBytes(arena.dropped_bytes), FormatBytes(arena.chunk_bytes),
      arena.sealed ? "sealed" : "not sealed",
      r.asked.through_pool ? "loaded through" : PoolChoiceName(r.asked.pool),
      arena.residency.verify ? "on" : "off");
  absl::StrAppendFormat(
      &out,
      "plain pinned copy of the same bytes: out %.2f ms (%.1f GB/s), in %.2f ms (%.1f GB/s)\n",
      r.plain.out_seconds * 1e3, static_cast<double>(r.plain.bytes) / r.plain.out_seconds / 1e9,
      r.plain.in_seconds * 1e3, static_cast<double>(r.plain.bytes) / r.plain.in_seconds / 1e9);
  if (r.asked.pool == PoolChoice::kPrepared) {
    absl::StrAppendFormat(&out, "host memory prepared in %.2f ms\n", r.prepare_seconds * 1e3);
  }
  for (std::size_t i = 0; i < r.cycles.size(); ++i) {
    const SleepCycle& cycle = r.cycles[i];
    absl::StrAppendFormat(&out, "cycle %d\n", i + 1);
    AppendRow(&out, "kept sleep", cycle.kept_sleep, r.plain.out_seconds, r.kept_bytes);
    AppendRow(&out, "kept wake", cycle.kept_wake, r.plain.in_seconds, r.kept_bytes);
    if (arena.dropped_bytes == 0) continue;
    AppendRow(&out, "dropped sleep", cycle.dropped_sleep, 0, arena.dropped_bytes);
    AppendRow(&out, "dropped wake", cycle.dropped_wake, 0, arena.dropped_bytes);
  }
  absl::StrAppendFormat(&out,
                        "host memory for %s kept: %s; device memory while asleep: %d B of the "
                        "arena, %+d B of the process\n",
                        FormatBytes(r.kept_bytes), FormatBytes(r.backing_bytes), r.own_bytes_asleep,
                        r.process_growth_bytes);
  return out;
}

std::string GoalText(const DeviceInfo& device, const GoalSuite& suite) {
  std::string out = Heading(device);
  absl::StrAppendFormat(&out, "%-66s %16s %16s  %s\n", "item", "measured", "goal", "verdict");
  for (const GoalRow& row : suite.rows) {
    absl::StrAppendFormat(&out, "%-66s %16s %16s  %s%s%s\n", row.item, Figure(row, row.figure),
                          row.has_goal ? Figure(row, row.goal) : "-", Verdict(row, suite.judged),
                          row.note.empty() ? "" : "; ", row.note);
  }
  if (suite.options.neighbour > 0) out += NeighbourText(suite.neighbour);
  if (!suite.judged) {
    out += "goals hold for 16 GiB on a GPU: nothing is judged here\n";
  } else {
    out += suite.passed() ? "PASS\n" : "FAIL: a goal is missed\n";
  }
  return out;
}

std::string NeighbourText(const NeighbourResult& r) {
  if (!r.skipped.empty()) return absl::StrCat("neighbour: left out: ", r.skipped, "\n");
  std::string out = absl::StrFormat(
      "neighbour: got %s in %d of %d rounds, holding the other %s of the device but %s\n",
      FormatBytes(r.taken_bytes), r.granted, r.rounds, FormatBytes(r.filled_bytes),
      FormatBytes(r.slack_bytes));
  if (!r.refusal.empty()) absl::StrAppend(&out, "  first refusal: ", r.refusal, "\n");
  return out;
}

}  // namespace holdfast
