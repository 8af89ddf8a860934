// What `holdfast run` found, as text and as JSON.
#ifndef HOLDFAST_TOOLS_REPORT_H_
#define HOLDFAST_TOOLS_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "allocator/arena.h"
#include "allocator/ledger.h"
#include "allocator/residency.h"
#include "allocator/workspace_override.h"
#include "runtime/engine.h"
#include "runtime/start_plan.h"
#include "tools/dictionary.h"
#include "tools/run_options.h"

namespace holdfast {

struct GraphLine {
  std::string name;
  std::size_t nodes = 0;
  std::map<PointerClass, std::uint64_t> pointers;
  std::uint64_t replays = 0;
};

struct CycleLine {
  std::vector<std::string> tags;
  TransitionReport sleep, wake;
  LedgerReport ledger_asleep;
  std::uint64_t own_bytes_awake = 0, own_bytes_asleep = 0, own_bytes_again = 0;
  std::uint64_t scribbled_bytes = 0;
  // Proofs; each is a count of what was compared.
  std::uint64_t prompts_compared = 0, pointers_checked = 0, leaves_compared = 0,
                graphs_recaptured = 0;
  std::int64_t parity_bytes = 0;
};

struct RunReport {
  RunOptions options;
  std::string version, device, driver, dtype, arena_base;
  int base_candidate = -1;  // which of the built-in bases it is; -1: the device's own choice
  std::map<std::string, double> seconds;  // by stage of the start
  std::vector<TagBytes> tags;
  KvPlan kv;
  LedgerReport ledger;                     // once serving
  StartPlan plan;                          // made before the start, measured once serving
  std::vector<EffectiveSetting> settings;  // of the workspace, and where each comes from
  std::uint64_t scratch_bytes = 0, scratch_sum_bytes = 0;
  double plan_ratio = 1;
  std::string synthetic;  // of a synthetic stack: profiling and path gating; empty for others
  std::vector<GraphLine> graphs;
  std::vector<CycleLine> cycles;  // those that passed
  std::size_t prompts = 0;
  std::uint64_t tokens = 0;
  std::string sample_prompt, sample_text;
  Dictionary::Share dictionary;
  bool dictionary_found = false;
  std::string failure;  // "reason: what"; empty: PASS

  bool passed() const { return failure.empty(); }
};

std::string ReportText(const RunReport& report);
std::string ReportJson(const RunReport& report);
absl::Status WriteFile(const std::string& path, const std::string& text);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_REPORT_H_
