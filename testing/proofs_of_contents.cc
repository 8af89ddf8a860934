// Kept and dropped bytes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "testing/examination.h"

namespace holdfast::testing {
namespace {

bool Needs(const Graph& graph, const std::string& tag) {
  const std::vector<std::string>& tags = graph.manifest().tags;
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

// The graph refuses with an error of this kind, and nothing is launched.
void MustRefuse(Examination& x, Graph& graph, ErrorKind kind, const std::string& why) {
  const std::uint64_t launches = x.device().calls().succeeded(Call::kLaunchGraph);
  const absl::Status status = graph.Replay();
  if (!IsErrorKind(status, kind)) {
    x.Find(absl::StrCat(graph.name(), " replays although ", why, ": ",
                        status.ok() ? "no error" : std::string(status.message())));
  } else if (x.device().calls().succeeded(Call::kLaunchGraph) != launches) {
    x.Find(absl::StrCat(graph.name(), " refuses because ", why, ", but was launched"));
  }
  x.Count("replays refused");
}

// Asleep nothing replays; awake and undefined neither, until refilled.
bool RefusesWhatIsGone(Examination& x, const std::string& tag) {
  if (!x.Sleep({tag})) return false;
  for (Graph* const graph : x.subject().graphs().graphs()) {
    if (Needs(*graph, tag)) MustRefuse(x, *graph, ErrorKind::kAsleep, tag + " is asleep");
  }
  if (!x.Wake({tag}, /*refill=*/false)) return false;
  for (Graph* const graph : x.subject().graphs().graphs()) {
    if (!Needs(*graph, tag)) continue;
    if (!IsErrorKind(x.arena().CheckReady(graph->manifest().tags), ErrorKind::kUndefinedContents)) {
      continue;
    }
    MustRefuse(x, *graph, ErrorKind::kUndefinedContents, tag + " is undefined");
  }
  return x.Ok(x.subject().Refill(), "refill");
}

// What changed since the last sleep has to be copied again.
bool KeepsChanges(Examination& x, SpanId span) {
  const absl::StatusOr<std::byte> was = x.FirstByte(span);
  if (!x.Ok(was, "reading a byte")) return false;
  if (!x.Ok(x.SetFirstByte(span, ~*was), "changing a byte")) return false;
  const bool kept = x.Cycle(x.all_tags());
  return x.AllAwake() && x.Ok(x.SetFirstByte(span, *was), "changing a byte back") && kept &&
         x.Cycle(x.all_tags());
}

}  // namespace

void ProveKeptBytes(Examination& x) {
  if (!x.Ready()) return;
  if (!x.FirstSpan(IsKept).has_value()) return x.Skip("no span is kept");
  const std::optional<SpanId> changing =
      x.FirstSpan([](const SpanSpec& spec) { return IsKept(spec) && spec.role == Role::kMutable; });
  for (int i = 0; i < x.cycles(); ++i) {
    if (!x.Cycle(x.all_tags())) return;
    if (!changing.has_value()) continue;
    if (!KeepsChanges(x, *changing)) return;
  }
  for (const std::string& tag : x.all_tags()) {
    if (x.is_control()) break;
    if (!x.Cycle({tag})) return;
  }
  const absl::StatusOr<Picture> picture = x.Look(/*contents=*/true);
  if (x.Ok(picture, "looking")) x.Count("leaves each time", LeavesOf(*picture));
}

void ProveDroppedBytes(Examination& x) {
  if (!x.Ready()) return;
  const auto comes_back = [](const SpanSpec& spec) {
    return spec.refill != nullptr || DeclaresContents(spec);
  };
  if (!x.FirstSpan(comes_back).has_value()) x.Skip("no dropped span says what it comes back with");
  for (const std::string& tag : x.all_tags()) {
    if (!RefusesWhatIsGone(x, tag)) return;
  }
  for (int i = 0; i < x.cycles(); ++i) {
    if (!x.Cycle(x.all_tags())) return;
  }
}

}  // namespace holdfast::testing
