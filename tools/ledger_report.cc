#include "tools/ledger_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "device/bytes.h"

namespace holdfast {
namespace {

std::string SignedBytes(std::int64_t bytes) {
  return bytes < 0 ? "-" + FormatBytes(static_cast<std::uint64_t>(-bytes))
                   : FormatBytes(static_cast<std::uint64_t>(bytes));
}

// "17.5 MiB (18350080 B)   3.1 %"
std::string Cell(std::int64_t bytes, const LedgerReport& of) {
  const double whole = static_cast<double>(of.process_bytes);
  const double share = whole > 0 ? 100 * static_cast<double>(bytes) / whole : 0;
  return absl::StrFormat("%24s %5.1f %%", SignedBytes(bytes), share);
}

std::int64_t BytesOf(const LedgerReport& ledger, const LedgerLine& like) {
  for (const LedgerLine& line : ledger.lines) {
    if (line.owner == like.owner && line.what == like.what) return line.bytes;
  }
  return 0;
}

}  // namespace

std::string LedgerText(const LedgerReport& awake, const LedgerReport* asleep) {
  std::string out;
  const auto row = [&](const std::string& owner, const std::string& what, std::int64_t now,
                       std::int64_t then) {
    absl::StrAppendFormat(&out, "%-22s %-9s %s", owner, what, Cell(now, awake));
    if (asleep != nullptr) absl::StrAppend(&out, "  ", Cell(then, *asleep));
    out += "\n";
  };
  absl::StrAppendFormat(&out, "%-32s %32s", "device memory by owner", "awake");
  if (asleep != nullptr) absl::StrAppendFormat(&out, "  %32s", "asleep");
  out += "\n";
  for (const LedgerLine& line : awake.lines) {
    const std::int64_t then = asleep != nullptr ? BytesOf(*asleep, line) : 0;
    if (line.bytes != 0 || then != 0) row(line.owner, line.what, line.bytes, then);
  }
  const auto of = [&](std::int64_t LedgerReport::*field) {
    return asleep != nullptr ? asleep->*field : 0;
  };
  row("unexplained", awake.adds_up() ? "in bound" : "TOO MUCH", awake.unexplained_bytes,
      of(&LedgerReport::unexplained_bytes));
  row("process", awake.process_bytes > 0 ? "" : "unknown",
      static_cast<std::int64_t>(awake.process_bytes),
      asleep != nullptr ? static_cast<std::int64_t>(asleep->process_bytes) : 0);
  row("floor", "", awake.floor_bytes, of(&LedgerReport::floor_bytes));
  out += "floor: what only the end of the context frees\n";
  return out;
}

nlohmann::json LedgerJson(const LedgerReport& ledger) {
  nlohmann::json lines = nlohmann::json::array();
  for (const LedgerLine& line : ledger.lines) {
    lines.push_back({{"owner", line.owner},
                     {"what", line.what},
                     {"bytes", line.bytes},
                     {"sleeps", line.sleeps}});
  }
  return {{"lines", lines},
          {"explained_bytes", ledger.explained_bytes},
          {"process_bytes", ledger.process_bytes},
          {"unexplained_bytes", ledger.unexplained_bytes},
          {"unexplained_bound_bytes", ledger.bound_bytes()},
          {"adds_up", ledger.adds_up()},
          {"floor_bytes", ledger.floor_bytes},
          {"exported_bytes", ledger.exported_bytes},
          {"imported_bytes", ledger.imported_bytes}};
}

}  // namespace holdfast
