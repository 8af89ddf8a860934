#include "tools/report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "device/bytes.h"
#include "tools/ledger_report.h"
#include "tools/plan_report.h"

namespace holdfast {
namespace {

// A string that JSON can hold: bytes outside printable ASCII become '?'.
std::string Printable(const std::string& text) {
  std::string out;
  for (char c : text) out.push_back(c == '\n' || (c >= ' ' && c <= '~') ? c : '?');
  return out;
}

double GigabytesPerSecond(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

nlohmann::json TransitionJson(const TransitionReport& t) {
  nlohmann::json tags = nlohmann::json::array();
  for (const TagTransition& tag : t.tags) {
    tags.push_back({{"tag", tag.tag},
                    {"kept_bytes", tag.kept_bytes},
                    {"clean_bytes", tag.clean_bytes},
                    {"dropped_bytes", tag.dropped_bytes}});
  }
  return {{"seconds", t.seconds},
          {"seconds_by_stage", t.seconds_by_stage},
          {"freed_bytes", t.freed_bytes},
          {"backing_bytes", t.backing_bytes},
          {"tags", tags}};
}

double StageSeconds(const TransitionReport& t, const char* stage) {
  const auto found = t.seconds_by_stage.find(stage);
  return found == t.seconds_by_stage.end() ? 0 : found->second;
}

std::uint64_t KeptBytes(const TransitionReport& t) {
  std::uint64_t bytes = 0;
  for (const TagTransition& tag : t.tags) bytes += tag.kept_bytes;
  return bytes;
}

void AppendCycle(std::string* out, std::size_t index, const CycleLine& c) {
  absl::StrAppendFormat(out, "cycle %d (%s)\n", index + 1, absl::StrJoin(c.tags, ", "));
  const double drain = StageSeconds(c.sleep, "drain");
  absl::StrAppendFormat(
      out, "  sleep %8.1f ms   (and %.1f ms waiting for queued replays) freed %s, copied out %s\n",
      (c.sleep.seconds - drain) * 1e3, drain * 1e3, FormatBytes(c.sleep.freed_bytes),
      FormatBytes(KeptBytes(c.sleep)));
  absl::StrAppendFormat(out, "  wake  %8.1f ms   copied in %s, %.1f GB/s over all stages\n",
                        c.wake.seconds * 1e3, FormatBytes(KeptBytes(c.wake)),
                        GigabytesPerSecond(KeptBytes(c.wake), c.wake.seconds));
  if (c.scribbled_bytes > 0) {
    absl::StrAppendFormat(out, "  another process scribbled over %s meanwhile\n",
                          FormatBytes(c.scribbled_bytes));
  }
  absl::StrAppendFormat(
      out,
      "  parity %d B; %d pointers mapped with access; %d leaf hashes equal; %d graphs "
      "re-captured, same words; %d completions with equal logit bits\n",
      c.parity_bytes, c.pointers_checked, c.leaves_compared, c.graphs_recaptured,
      c.prompts_compared);
}

nlohmann::json SettingsJson(const std::vector<EffectiveSetting>& settings) {
  nlohmann::json out = nlohmann::json::array();
  for (const EffectiveSetting& s : settings) {
    out.push_back({{"name", s.name}, {"value", s.value}, {"origin", s.origin}});
  }
  return out;
}

}  // namespace

std::string ReportText(const RunReport& r) {
  std::string out;
  absl::StrAppendFormat(&out, "holdfast %s on %s (driver %s), %s, arena at %s\n\n", r.version,
                        r.device, r.driver, r.dtype, r.arena_base);
  absl::StrAppendFormat(&out, "%-12s %-10s %6s %24s %24s\n", "tag", "role", "spans", "logical",
                        "resident");
  for (const TagBytes& tag : r.tags) {
    absl::StrAppendFormat(&out, "%-12s %-10s %6d %24s %24s\n", tag.tag, RoleName(tag.role),
                          tag.spans, FormatBytes(tag.logical_bytes),
                          FormatBytes(tag.resident_bytes));
  }
  out += KvOrdersText(r.kv);
  absl::StrAppendFormat(
      &out, "scratch: %s for all buckets of the lane (separate: %s), height / lower bound %.3f\n",
      FormatBytes(r.scratch_bytes), FormatBytes(r.scratch_sum_bytes), r.plan_ratio);
  for (const EffectiveSetting& setting : r.settings) {
    absl::StrAppend(&out, setting.name, " = ", setting.value, " (", setting.origin, ")\n");
  }
  if (!r.synthetic.empty()) out += "\n" + r.synthetic;
  absl::StrAppendFormat(&out, "\n%-14s %6s %8s  %s\n", "graph", "nodes", "replays",
                        "pointers by class");
  for (const GraphLine& g : r.graphs) {
    std::vector<std::string> classes;
    for (const auto& [kind, count] : g.pointers)
      classes.push_back(absl::StrCat(PointerClassName(kind), " ", count));
    absl::StrAppendFormat(&out, "%-14s %6d %8d  %s\n", g.name, g.nodes, g.replays,
                          absl::StrJoin(classes, ", "));
  }
  const LedgerReport* asleep = r.cycles.empty() ? nullptr : &r.cycles.front().ledger_asleep;
  out += "\n" + LedgerText(r.ledger, asleep);
  out += "\n" + StartPlanText(r.plan);
  out += "\nstart:";
  for (const auto& [stage, seconds] : r.seconds)
    absl::StrAppendFormat(&out, " %s %.2f s;", stage, seconds);
  out += "\n\n";
  for (std::size_t i = 0; i < r.cycles.size(); ++i) AppendCycle(&out, i, r.cycles[i]);
  if (r.tokens > 0) {
    absl::StrAppendFormat(&out, "\n%d prompts greedy and seeded, %d tokens in all\n", r.prompts,
                          r.tokens);
    absl::StrAppendFormat(&out, "  \"%s\" -> \"%s\"\n", Printable(r.sample_prompt),
                          Printable(r.sample_text));
  }
  if (r.dictionary_found) {
    absl::StrAppendFormat(&out, "  %.1f %% of %d generated words are in the dictionary\n",
                          100 * r.dictionary.value(), r.dictionary.words);
  } else if (r.tokens > 0) {
    absl::StrAppendFormat(&out, "  no word list at %s: words not checked\n", r.options.dictionary);
  }
  absl::StrAppendFormat(&out, "\n%d/%d cycles\n", r.cycles.size(), r.options.cycles);
  out += r.passed() ? "PASS\n" : absl::StrCat("FAIL: ", r.failure, "\n");
  return out;
}

std::string ReportJson(const RunReport& r) {
  using nlohmann::json;
  json graphs = json::array(), tags = json::array(), cycles = json::array();
  for (const GraphLine& g : r.graphs) {
    json pointers = json::object();
    for (const auto& [kind, count] : g.pointers) pointers[PointerClassName(kind)] = count;
    graphs.push_back(
        {{"name", g.name}, {"nodes", g.nodes}, {"replays", g.replays}, {"pointers", pointers}});
  }
  for (const TagBytes& t : r.tags) {
    tags.push_back({{"tag", t.tag},
                    {"role", RoleName(t.role)},
                    {"spans", t.spans},
                    {"logical_bytes", t.logical_bytes},
                    {"committed_bytes", t.committed_bytes},
                    {"resident_bytes", t.resident_bytes}});
  }
  for (const CycleLine& c : r.cycles) {
    cycles.push_back({{"tags", c.tags},
                      {"sleep", TransitionJson(c.sleep)},
                      {"ledger_asleep", LedgerJson(c.ledger_asleep)},
                      {"wake", TransitionJson(c.wake)},
                      {"own_bytes_awake", c.own_bytes_awake},
                      {"own_bytes_asleep", c.own_bytes_asleep},
                      {"own_bytes_again", c.own_bytes_again},
                      {"parity_bytes", c.parity_bytes},
                      {"scribbled_bytes", c.scribbled_bytes},
                      {"pointers_checked", c.pointers_checked},
                      {"leaves_compared", c.leaves_compared},
                      {"graphs_recaptured", c.graphs_recaptured},
                      {"completions_compared", c.prompts_compared}});
  }
  const json document = {
      {"name", "holdfast run"},
      {"version", r.version},
      {"device", r.device},
      {"driver", r.driver},
      {"dtype", r.dtype},
      {"model", r.options.model},
      {"inject", InjectionName(r.options.inject)},
      {"arena_base", r.arena_base},
      {"base_candidate", r.base_candidate},
      {"seconds", r.seconds},
      {"tags", tags},
      {"graphs", graphs},
      {"kv", KvPlanJson(r.kv)},
      {"scratch",
       {{"bytes", r.scratch_bytes},
        {"sum_bytes", r.scratch_sum_bytes},
        {"height_over_bound", r.plan_ratio}}},
      {"ledger", LedgerJson(r.ledger)},
      {"plan", StartPlanJson(r.plan)},
      {"settings", SettingsJson(r.settings)},
      {"prompts", r.prompts},
      {"tokens", r.tokens},
      {"sample", {{"prompt", Printable(r.sample_prompt)}, {"text", Printable(r.sample_text)}}},
      {"dictionary",
       {{"words", r.dictionary.words},
        {"known", r.dictionary.known},
        {"share", r.dictionary.value()}}},
      {"cycles", cycles},
      {"cycles_wanted", r.options.cycles},
      {"pass", r.passed()},
      {"failure", Printable(r.failure)}};
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = path}, "cannot be written");
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = path},
                     "could not be written whole");
  }
  return absl::OkStatus();
}

}  // namespace holdfast
