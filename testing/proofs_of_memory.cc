// Freed memory, the ledger, and reservations.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "testing/examination.h"
#include "testing/foreign_memory.h"
#include "testing/taken_memory.h"

namespace holdfast::testing {
namespace {

// What a driver may need for itself meanwhile, in either process.
constexpr std::uint64_t kGpuSlack = 64 * kMiB;

// Somebody who has all of the device that was free, and takes what is freed. On a GPU another
// process (not in controls: filling it takes seconds); the host device's memory belongs to one
// device object, so there it is this one.
class Taker {
 public:
  explicit Taker(Examination& x) : x_(x), crowd_(x.device()), taken_(x.device()) {}

  bool FillTheRest() {
    const bool is_cuda = x_.device().info().is_cuda;
    absl::Status status;
    if (is_cuda && x_.options().scribble && !x_.is_control()) {
      absl::StatusOr<std::unique_ptr<Neighbour>> started = x_.StartNeighbour();
      if (!x_.Ok(started, "starting the neighbour")) return false;
      neighbour_ = *std::move(started);
      status = neighbour_->FillAllBut(kGpuSlack).status();
    } else {
      if (is_cuda) x_.Note("taken by this process");
      absl::StatusOr<std::unique_ptr<Stream>> stream = x_.device().CreateStream("taker");
      if (!x_.Ok(stream, "making a stream")) return false;
      stream_ = *std::move(stream);
      if (!is_cuda) status = crowd_.TakeAllBut(0).status();
    }
    return x_.Ok(status, "filling the device");
  }
  absl::Status Take(std::uint64_t bytes) {
    return neighbour_ != nullptr ? neighbour_->Take(bytes) : taken_.TakeAndWrite(*stream_, bytes);
  }
  absl::Status GiveBack() {
    return neighbour_ != nullptr ? neighbour_->Release() : taken_.Release();
  }

 private:
  Examination& x_;
  std::unique_ptr<Neighbour> neighbour_;
  std::unique_ptr<Stream> stream_;
  TakenMemory crowd_, taken_;
};

bool FreesWhatItSays(Examination& x, Taker& taker, const std::vector<std::string>& tags) {
  const absl::StatusOr<Picture> before = x.Look(/*contents=*/false);
  TransitionReport report;
  if (!x.Ok(before, "looking") || !x.Sleep(tags, &report)) return false;
  std::unique_ptr<ForeignMemory> held;
  if (x.planted(Fault::kHeldBack)) {
    absl::StatusOr<std::unique_ptr<ForeignMemory>> taken = ForeignMemory::Create(x.device());
    if (!x.Ok(taken, "planting the fault")) return false;
    held = *std::move(taken);
  }
  const absl::StatusOr<Picture> now = x.Look(/*contents=*/false);
  if (!x.Ok(now, "looking")) return false;
  const std::uint64_t gone = before->own_bytes - std::min(before->own_bytes, now->own_bytes);
  if (gone != report.freed_bytes) {
    x.Find(absl::StrCat("sleep says it freed ", report.freed_bytes, " B, the device says ", gone));
    return false;
  }
  if (!x.Ok(taker.Take(report.freed_bytes), "taking what sleep freed") ||
      !x.Ok(taker.GiveBack(), "giving it back")) {
    return false;
  }
  x.Count("bytes taken by somebody else", report.freed_bytes);
  return x.Wake(tags);
}

// OK with the report; a finding otherwise.
bool AddsUp(Examination& x, const std::string& when) {
  absl::StatusOr<LedgerReport> report = x.subject().Memory();
  if (!x.Ok(report, "asking the ledger")) return false;
  std::unique_ptr<ForeignMemory> hidden;
  if (x.planted(Fault::kHiddenMemory)) {
    absl::StatusOr<std::unique_ptr<ForeignMemory>> taken = ForeignMemory::Create(
        x.device(), 2 * static_cast<std::uint64_t>(report->bound_bytes()) + 1);
    if (!x.Ok(taken, "planting the fault")) return false;
    hidden = *std::move(taken);
    report = x.subject().Memory();
    if (!x.Ok(report, "asking the ledger")) return false;
  }
  if (!report->adds_up()) {
    x.Find(absl::StrCat(when, ": ", report->unexplained_bytes, " B of ", report->process_bytes,
                        " B are unexplained, ", report->bound_bytes(), " B may be"));
    return false;
  }
  std::int64_t sum = 0, resident = 0;
  for (const LedgerLine& line : report->lines) sum += line.what == "driver" ? 0 : line.bytes;
  for (const TagBytes& tag : x.arena().bytes_by_tag()) {
    resident += static_cast<std::int64_t>(tag.resident_bytes);
  }
  if (sum != resident) {
    x.Find(absl::StrCat(when, ": the ledger's spans and rounding are ", sum, " B, the arena holds ",
                        resident, " B"));
    return false;
  }
  x.Count("reports");
  return true;
}

}  // namespace

void ProveFreedIsFree(Examination& x) {
  if (!x.Ready()) return;
  Taker taker(x);
  if (!taker.FillTheRest()) return;
  if (!FreesWhatItSays(x, taker, x.all_tags())) return;
  for (const std::string& tag : x.all_tags()) {
    if (!FreesWhatItSays(x, taker, {tag})) return;
  }
}

void ProveLedger(Examination& x) {
  if (!x.Ready()) return;
  const absl::StatusOr<LedgerReport> report = x.subject().Memory();
  if (IsErrorKind(report.status(), ErrorKind::kUnsupported)) {
    return x.Skip(std::string(report.status().message()));
  }
  if (!AddsUp(x, "awake")) return;
  if (report->process_bytes == 0) x.Skip("the driver gives no figure to add up to");
  std::vector<std::string> woken;
  for (const std::string& tag : x.all_tags()) {
    if (!x.Sleep({tag}) || !AddsUp(x, tag + " asleep")) return;
    woken.push_back(tag);
  }
  if (!x.Wake(woken)) return;
  AddsUp(x, "awake again");
}

void ProveReservations(Examination& x) {
  std::vector<PathUse> paths = x.subject().Paths();
  if (paths.empty()) return x.Skip("the subject declares no paths");
  if (x.planted(Fault::kWrongReservation)) {
    PathUse& path = paths.front();
    path.reserved_bytes = path.selected ? 0 : x.device().info().granularity;
  }
  for (const PathUse& path : paths) {
    if (path.selected == (path.reserved_bytes > 0)) continue;
    x.Find(absl::StrCat(path.name, " is ", path.selected ? "" : "not ", "selected, and ",
                        path.reserved_bytes, " B are reserved for it"));
  }
  x.Count("paths", paths.size());
}

}  // namespace holdfast::testing
