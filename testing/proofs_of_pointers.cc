// What captured graphs point to: audited again, captured again, captured elsewhere, and followed
// into memory.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graphs/deep_scan.h"
#include "testing/examination.h"
#include "testing/foreign_memory.h"
#include "testing/recapture.h"

namespace holdfast::testing {
namespace {

// The first pointer in a kernel's parameter now leads to `to`. False if there is none.
bool Redirect(GraphView& view, const AuditReport& audit, DeviceAddress to) {
  for (const PointerFinding& pointer : audit.pointers) {
    if (pointer.place != WordPlace::kParameter || pointer.kind != PointerClass::kSpan) continue;
    ParameterView::Bytes& bytes = view.nodes[pointer.node].parameters[pointer.index].bytes;
    if (pointer.byte + sizeof(to.value) > bytes.size()) continue;
    std::memcpy(bytes.data() + pointer.byte, &to.value, sizeof(to.value));
    return true;
  }
  return false;
}

bool AuditAgain(Examination& x) {
  std::unique_ptr<ForeignMemory> foreign;
  if (x.planted(Fault::kForeignWord)) {
    absl::StatusOr<std::unique_ptr<ForeignMemory>> taken = ForeignMemory::Create(x.device());
    if (!x.Ok(taken, "planting the fault")) return false;
    foreign = *std::move(taken);
  }
  for (const Graph* graph : x.subject().graphs().graphs()) {
    absl::StatusOr<GraphView> view = graph->captured().View();
    if (!x.Ok(view, "reading " + graph->name())) return false;
    if (foreign != nullptr) Redirect(*view, graph->manifest().audit, foreign->range().base);
    const AuditReport report =
        Audit(*view, x.device(), &x.arena(), x.subject().externals(), x.subject().audit_policy());
    if (!x.Ok(report.Verdict(graph->name()), "auditing again")) return false;
    x.Count("words audited", report.words);
    x.Count("graphs");
  }
  return true;
}

// Every pointer has pages and access behind it.
bool PagesBehindPointers(Examination& x) {
  for (const Graph* graph : x.subject().graphs().graphs()) {
    const AuditReport& audit = graph->manifest().audit;
    for (const PointerFinding& pointer : audit.pointers) {
      if (pointer.kind != PointerClass::kSpan) continue;
      const std::string& object = audit.ObjectOf(pointer);
      const std::optional<SpanId> span = x.arena().Find(object);
      const bool past_end = span.has_value() && pointer.offset == x.arena().range(*span).bytes;
      const AddressState state = x.device().Query({past_end ? pointer.word - 1 : pointer.word});
      // A cache reserves for the largest case: what lies behind its commit has no pages, rightly.
      const bool uncommitted =
          span.has_value() && pointer.offset >= x.arena().committed_bytes(*span);
      if (!uncommitted && (!state.mapped || state.access == Access::kNone)) {
        x.Find(absl::StrCat(graph->name(), " node ", pointer.node, " ", pointer.where(),
                            " points into ", object, ", which has no pages behind it"));
        return false;
      }
      x.Count("pointers");
    }
  }
  return true;
}

bool NoLines(Examination& x, const absl::StatusOr<std::vector<std::string>>& lines,
             const std::string& doing) {
  if (!x.Ok(lines, doing)) return false;
  if (lines->empty()) return true;
  x.Find(
      absl::StrCat(doing, ": ", lines->front(),
                   lines->size() > 1 ? absl::StrCat(" (and ", lines->size() - 1, " more)") : ""));
  return false;
}

bool FollowIntoMemory(Examination& x) {
  const absl::StatusOr<DeepScanReport> report =
      DeepScan(x.device(), x.subject().lane().stream(), &x.arena(), x.subject().externals());
  if (!x.Ok(report, "deep scan")) return false;
  if (!report->scanned.empty()) x.Count("spans followed", report->scanned.size());
  return x.Ok(report->Verdict(), "deep scan");
}

}  // namespace

void ProvePointers(Examination& x) {
  if (!x.Ready()) return;
  if (x.subject().graphs().graphs().empty()) return x.Skip("there are no graphs");
  if (!x.Cycle(x.all_tags())) return;
  if (!x.arena().locked()) x.Find("the arena is not locked: spans may still be added");
  if (!AuditAgain(x) || !PagesBehindPointers(x) || !FollowIntoMemory(x)) return;
  if (!NoLines(x, CaptureAgain(x.subject()), "captured again")) return;
  NoLines(x, CaptureElsewhere(x.subject()), "captured at another base");
}

}  // namespace holdfast::testing
