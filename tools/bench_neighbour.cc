#include "tools/bench_neighbour.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "absl/strings/str_cat.h"
#include "testing/scribble.h"
#include "tools/progress.h"

namespace holdfast {
namespace {

constexpr std::chrono::seconds kDeadline{60};
// What the driver may need for itself meanwhile, in either process.
constexpr std::uint64_t kSlack = 64 * kMiB;

}  // namespace

absl::StatusOr<NeighbourResult> RunNeighbour(Device& device, const BenchArenaOptions& options,
                                             int rounds) {
  NeighbourResult result{.slack_bytes = kSlack};
  if (rounds < 1) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "--neighbour"},
                     "must be at least 1 round");
  }
  if (!device.info().is_cuda) {
    result.skipped = "another process does not share the memory of a host device";
    return result;
  }
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<BenchArena> bench,
                            BenchArena::Create(device, options, /*through_pool=*/false));
  Residency& residency = bench->residency();
  const std::vector<std::string> tags = bench->arena().tags();
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::unique_ptr<testing::Neighbour> neighbour,
      testing::Neighbour::Start(testing::ScribblerInThisProgram(), device.info().spec));
  HOLDFAST_ASSIGN_OR_RETURN(result.filled_bytes, neighbour->FillAllBut(kSlack));
  const std::uint64_t chunk =
      AlignUp(std::min(options.chunk_bytes, options.kept_bytes), device.info().granularity);
  for (; result.rounds < rounds; ++result.rounds) {
    ShowStage(absl::StrCat("neighbour: round ", result.rounds + 1));
    HOLDFAST_ASSIGN_OR_RETURN(const TransitionReport slept,
                              residency.Sleep(tags, std::chrono::steady_clock::now() + kDeadline));
    if (slept.freed_bytes < chunk + 2 * kSlack) {
      return MakeError({.kind = ErrorKind::kInvalidArgument,
                        .object = "--bytes",
                        .need = chunk + 2 * kSlack,
                        .have = slept.freed_bytes},
                       "too little to tell freed memory from what was free anyway");
    }
    result.taken_bytes = slept.freed_bytes - chunk;
    const absl::Status taken = neighbour->Take(result.taken_bytes);
    if (taken.ok()) {
      ++result.granted;
      HOLDFAST_RETURN_IF_ERROR(neighbour->Release());
    } else if (result.refusal.empty()) {
      result.refusal = std::string(taken.message());
    }
    HOLDFAST_RETURN_IF_ERROR(
        residency.Wake(tags, {.memory_deadline = std::chrono::steady_clock::now() + kDeadline})
            .status());
  }
  ClearProgress();
  return result;
}

}  // namespace holdfast
