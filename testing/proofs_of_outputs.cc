// Outputs: the same bits before sleep and after wake, eager and replayed, whatever pads and scratch
// held.
#include "absl/strings/str_cat.h"
#include "testing/examination.h"
#include "testing/golden_file.h"
#include "testing/poison.h"

namespace holdfast::testing {
namespace {

// Runs and compares; what the subject cannot serve is noted and left out.
bool SameOutputs(Examination& x, const RunRequest& request, const std::string& when) {
  if (request.eager || request.poison_pads) {
    const absl::StatusOr<Outputs> tried = x.subject().Run(request);
    if (IsErrorKind(tried.status(), ErrorKind::kUnsupported)) {
      x.Note(absl::StrCat("not looked at: ", when));
      return true;
    }
  }
  Outputs now;
  if (!x.Run(request, &now)) return false;
  x.Count("runs");
  return x.Same(Proof::kOutputs, FirstDifference(x.golden(), now), when);
}

bool SameAsFile(Examination& x) {
  const std::string& path = x.options().golden;
  if (path.empty()) return true;
  const absl::StatusOr<GoldenFile> file = LoadGolden(path);
  if (!file.ok()) {  // a broken file is no broken byte of the subject
    x.Find(std::string(file.status().message()));
    return false;
  }
  if (file->seed != x.options().seed || file->subject != x.subject().name()) {
    x.Find(absl::StrCat(path, ": holds outputs of ", file->subject, " with seed ", file->seed,
                        ", not of ", x.subject().name(), " with seed ", x.options().seed));
    return false;
  }
  return x.Same(Proof::kOutputs, FirstDifference(file->outputs, x.golden()), path);
}

}  // namespace

void ProveOutputs(Examination& x) {
  if (!x.Ready() || !SameAsFile(x)) return;
  const std::uint64_t seed = x.options().seed;
  if (x.golden().empty()) return x.Skip("the subject has no outputs");
  if (!SameOutputs(x, {.seed = seed}, "replayed again")) return;
  if (!SameOutputs(x, {.seed = seed, .eager = true}, "eager")) return;
  if (!SameOutputs(x, {.seed = seed, .poison_pads = true}, "with poisoned pads")) return;
  if (!x.Ok(PoisonScratch(x.subject()), "poisoning scratch") ||
      !SameOutputs(x, {.seed = seed}, "with poisoned scratch"))
    return;
  const std::vector<std::string> tags = x.all_tags();
  for (int i = 0; i < x.cycles(); ++i) {
    if (!x.Cycle(tags, [&x] { return x.ScribbleOverFreed(); })) return;
    if (!SameOutputs(x, {.seed = seed}, "after all slept")) return;
    const std::vector<std::string> some = {tags[static_cast<std::size_t>(i) % tags.size()]};
    if (!x.Cycle(some) ||
        !SameOutputs(x, {.seed = seed}, absl::StrCat("after ", some[0], " slept"))) {
      return;
    }
  }
  if (!x.options().scribble) x.Note("nobody scribbled over freed memory");
}

}  // namespace holdfast::testing
