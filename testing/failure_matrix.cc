#include "testing/failure_matrix.h"

#include <algorithm>
#include <array>
#include <memory>

#include "absl/strings/str_cat.h"
#include "testing/failure_rig.h"

namespace holdfast::testing {
namespace {

constexpr char kFirstSleep[] = "first sleep", kLaterSleep[] = "later sleep", kWake[] = "wake";
constexpr std::size_t kCalls = static_cast<std::size_t>(Call::kCount_);
using CallCounts = std::array<std::uint64_t, kCalls>;

CallCounts Counts(Device& device) {
  CallCounts counts{};
  for (std::size_t i = 0; i < kCalls; ++i) {
    counts[i] = device.calls().succeeded(static_cast<Call>(i));
  }
  return counts;
}

// A rig in the state the transition starts from.
absl::StatusOr<std::unique_ptr<FailureRig>> Start(Device& device, const FailureCell& cell,
                                                  std::uint64_t seed) {
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<FailureRig> rig,
                            FailureRig::Create(device, cell.role, seed));
  if (cell.transition == kFirstSleep) return rig;
  HOLDFAST_RETURN_IF_ERROR(rig->Sleep());
  if (cell.transition == kWake) return rig;
  HOLDFAST_RETURN_IF_ERROR(rig->Wake());
  HOLDFAST_RETURN_IF_ERROR(rig->Rewrite(seed + 1));
  return rig;
}

absl::Status RunTransition(FailureRig& rig, const FailureCell& cell) {
  return cell.transition == kWake ? rig.Wake() : rig.Sleep();
}

// Tries k after k of one cell.
class CellRun {
 public:
  CellRun(Device& device, const FailureMatrixOptions& options, FailureCell& cell)
      : device_(device), options_(options), cell_(cell) {}

  absl::Status Try(int k) {
    k_ = k;
    HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse at_start, device_.Memory());
    {
      HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<FailureRig> rig,
                                Start(device_, cell_, options_.seed));
      HOLDFAST_RETURN_IF_ERROR(FailAndRetry(*rig));
    }
    HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse at_end, device_.Memory());
    if (at_end.own_bytes != at_start.own_bytes) {
      cell_.leaked_bytes += at_end.own_bytes - at_start.own_bytes;
      Problem(absl::StrCat(at_end.own_bytes - at_start.own_bytes, " B leaked"));
    } else if (!device_.calls().Balanced()) {
      Problem("something was not given back");
    }
    return absl::OkStatus();
  }

 private:
  void Problem(const std::string& what) { cell_.problems.push_back(absl::StrCat(k_, ": ", what)); }

  absl::Status FailAndRetry(FailureRig& rig) {
    HOLDFAST_ASSIGN_OR_RETURN(const FailureRig::Look before, rig.LookAround());
    device_.calls().FailAt(static_cast<std::uint64_t>(k_), {cell_.call});
    const absl::Status status = RunTransition(rig, cell_);
    const bool fired = device_.calls().Disarm();
    if (status.ok()) {
      if (fired) ++cell_.unheard;
      return Finish(rig);
    }
    if (!IsErrorKind(status, ErrorKind::kDriver)) Problem(status.ToString());
    HOLDFAST_RETURN_IF_ERROR(Plant());
    HOLDFAST_ASSIGN_OR_RETURN(const FailureRig::Look after, rig.LookAround());
    if (!(after == before)) Problem("the state is not as before");
    FailureRig::ContentsFound found;
    if (cell_.transition != kWake) {
      HOLDFAST_ASSIGN_OR_RETURN(found, rig.CheckContents(/*dropped_gone=*/false));
    }
    if (found.contents == FailureRig::Contents::kOther) {
      Problem(absl::StrCat(found.span, " holds other bytes after the failure"));
    } else if (found.contents == FailureRig::Contents::kAsDeclared) {
      ++cell_.redeclared;
    } else {
      ++cell_.unchanged;
    }
    if (const absl::Status again = RunTransition(rig, cell_); !again.ok()) {
      Problem(absl::StrCat("the retry says ", again.ToString()));
      return absl::OkStatus();
    }
    return Finish(rig);
  }

  // From the transition done to everything awake and compared.
  absl::Status Finish(FailureRig& rig) {
    if (cell_.transition != kWake) {
      HOLDFAST_ASSIGN_OR_RETURN(const FailureRig::Look asleep, rig.LookAround());
      if (std::count(asleep.asleep.begin(), asleep.asleep.end(), false) > 0) {
        Problem("not all is asleep");
      }
      if (const absl::Status woken = rig.Wake(); !woken.ok()) {
        Problem(absl::StrCat("the wake after it says ", woken.ToString()));
        return absl::OkStatus();
      }
    }
    if (options_.plant == PlantedFailure::kLostBytes) HOLDFAST_RETURN_IF_ERROR(rig.LoseBytes());
    HOLDFAST_ASSIGN_OR_RETURN(const FailureRig::ContentsFound found,
                              rig.CheckContents(/*dropped_gone=*/true));
    if (found.contents == FailureRig::Contents::kOther) {
      Problem(absl::StrCat(found.span, " holds other bytes after the retry"));
    }
    return absl::OkStatus();
  }

  absl::Status Plant() {
    if (options_.plant != PlantedFailure::kLeak) return absl::OkStatus();
    return device_.CreateChunk(device_.info().granularity).status();
  }

  Device& device_;
  const FailureMatrixOptions& options_;
  FailureCell& cell_;
  int k_ = 0;
};

}  // namespace

int FailureMatrix::tried() const {
  int tried = 0;
  for (const FailureCell& cell : cells) tried += cell.calls;
  return tried;
}

bool FailureMatrix::held() const {
  return std::all_of(cells.begin(), cells.end(), [](const FailureCell& cell) {
    return cell.problems.empty() && cell.leaked_bytes == 0;
  });
}

absl::StatusOr<FailureMatrix> RunFailureMatrix(Device& device,
                                               const FailureMatrixOptions& options) {
  FailureMatrix matrix{.device = device.info().name, .options = options};
  for (const char* transition : {kFirstSleep, kLaterSleep, kWake}) {
    for (const std::string& role : options.roles.empty() ? FailureRoles() : options.roles) {
      if (options.on_stage) options.on_stage(absl::StrCat(transition, ", ", role));
      FailureCell cell{.transition = transition, .role = role};
      CallCounts before{}, after{};
      {
        HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<FailureRig> rig,
                                  Start(device, cell, options.seed));
        before = Counts(device);
        HOLDFAST_RETURN_IF_ERROR(RunTransition(*rig, cell));
        after = Counts(device);
      }
      for (std::size_t i = 0; i < kCalls; ++i) {
        cell.call = static_cast<Call>(i);
        cell.calls = static_cast<int>(after[i] - before[i]);
        if (cell.calls == 0) continue;
        FailureCell& row = matrix.cells.emplace_back(cell);
        CellRun run(device, options, row);
        for (int k = 1; k <= row.calls; ++k) HOLDFAST_RETURN_IF_ERROR(run.Try(k));
      }
    }
  }
  return matrix;
}

}  // namespace holdfast::testing
