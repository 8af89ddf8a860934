#include "tools/sleep_goals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "device/bytes.h"

namespace holdfast {
namespace {

constexpr char kUnprepared[] = "sealed, nothing prepared";
constexpr char kPrepared[] = "sealed, pool prepared";
constexpr char kThroughPool[] = "loaded through the pool";
constexpr char kHashed[] = "not sealed, unchanged";
constexpr char kChanged[] = "not sealed, 1 % changed";
constexpr char kPaused[] = "sealed, 1 s asleep";
constexpr char kManySpans[] = "many spans of 4 KiB";
constexpr char kBig[] = "64 GiB kept";

constexpr double kOnePercent = 0.01;
constexpr std::uint64_t kSmallSpanBytes = 4 * kKiB;
constexpr std::uint64_t kSmallSpans = 100'000;

std::uint64_t Scaled(std::uint64_t bytes, double scale) {
  const auto scaled = static_cast<std::uint64_t>(static_cast<double>(bytes) * scale);
  return std::max(AlignDown(scaled, 2 * kMiB), 4 * kMiB);
}

double Ratio(double seconds, double plain) { return plain > 0 ? seconds / plain : 0; }

std::string GigabytesPerSecond(std::uint64_t bytes, double seconds) {
  return absl::StrFormat("%.1f GB/s", seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0);
}

GoalRow Seconds(const std::string& item, double figure, double goal, std::string note = "") {
  return {.item = item, .unit = "s", .figure = figure, .goal = goal, .note = std::move(note)};
}

GoalRow TimesPlain(const std::string& item, double seconds, double plain, double goal) {
  return {.item = item,
          .unit = "x plain copy",
          .figure = Ratio(seconds, plain),
          .goal = goal,
          .note = absl::StrFormat("%.4f s of %.4f s", seconds, plain)};
}

GoalRow ForInformation(const std::string& item, double seconds, std::string note = "") {
  return {.item = item, .unit = "s", .figure = seconds, .has_goal = false, .note = std::move(note)};
}

void AddUnpreparedRows(const SleepResult& r, std::vector<GoalRow>& rows) {
  rows.push_back(Seconds("first sleep, nothing prepared, host memory warm", r.first_sleep(), 0.70,
                         GigabytesPerSecond(r.kept_bytes, r.first_sleep())));
  rows.push_back(Seconds("later sleep, sealed", r.later_sleep(), 0.020));
  rows.push_back(TimesPlain("wake, bytes verified", r.wake(), r.plain.in_seconds, 1.05));
  rows.push_back(Seconds("dropped cache: sleep", r.dropped_sleep(), 0.015));
  rows.push_back(Seconds("dropped cache: wake back to back, without the fill", r.dropped_wake(),
                         0.002, absl::StrFormat("fill %.4f s", r.dropped_wake_fill())));
  rows.push_back(
      {.item = "host memory per kept byte",
       .unit = "B per B",
       .figure = static_cast<double>(r.backing_bytes) / static_cast<double>(r.kept_bytes),
       .goal = 1.01});
  rows.push_back({.item = "device memory of the arena while asleep",
                  .unit = "B",
                  .figure = static_cast<double>(r.own_bytes_asleep),
                  .goal = 0});
  rows.push_back({.item = "device memory of the process beyond what it had before the arena",
                  .unit = "B",
                  .figure = static_cast<double>(r.process_growth_bytes),
                  .goal = 0});
}

// The rows that a case proves.
void AddRows(const SleepResult& r, std::vector<GoalRow>& rows) {
  const std::string& name = r.asked.name;
  if (name == kUnprepared) {
    AddUnpreparedRows(r, rows);
  } else if (name == kPrepared) {
    rows.push_back(
        TimesPlain("first sleep, pool prepared ahead", r.first_sleep(), r.plain.out_seconds, 1.06));
  } else if (name == kThroughPool) {
    rows.push_back(Seconds("first sleep, loaded through the pool", r.first_sleep(), 0.030));
  } else if (name == kHashed) {
    rows.push_back(Seconds("later sleep, found unchanged by hash", r.later_sleep(), 0.030));
  } else if (name == kChanged) {
    rows.push_back(Seconds("later sleep, 1 % of the leaves changed", r.later_sleep(), 0.040));
  } else if (name == kPaused) {
    rows.push_back(Seconds("dropped cache: wake after 1 s, without the fill", r.dropped_wake(),
                           0.025, absl::StrFormat("fill %.4f s", r.dropped_wake_fill())));
    rows.push_back(
        TimesPlain("wake after 1 s, bytes verified", r.wake(), r.plain.in_seconds, 1.05));
  } else if (name == kManySpans) {
    const std::string spans = absl::StrCat(r.asked.arena.spans, " spans of 4 KiB");
    rows.push_back({.item = absl::StrCat(spans, ": mapped beyond the sum of the spans"),
                    .unit = "B",
                    .figure = static_cast<double>(r.mapped_kept_bytes - r.kept_bytes),
                    .goal = static_cast<double>(r.asked.arena.chunk_bytes)});
    rows.push_back(ForInformation(absl::StrCat(spans, ": first sleep"), r.first_sleep()));
    rows.push_back(ForInformation(absl::StrCat(spans, ": later sleep"), r.later_sleep()));
    rows.push_back(ForInformation(absl::StrCat(spans, ": wake"), r.wake()));
  } else if (name == kBig) {
    rows.push_back(ForInformation(absl::StrCat(name, ": first sleep"), r.first_sleep(),
                                  GigabytesPerSecond(r.kept_bytes, r.first_sleep())));
    rows.push_back(ForInformation(absl::StrCat(name, ": later sleep"), r.later_sleep()));
    rows.push_back(ForInformation(absl::StrCat(name, ": wake"), r.wake(),
                                  GigabytesPerSecond(r.kept_bytes, r.wake())));
  }
}

}  // namespace

std::vector<SleepCase> GoalCases(const GoalSuiteOptions& options) {
  const std::uint64_t bytes = Scaled(16 * kGiB, options.scale);
  const BenchArenaOptions sealed{.kept_bytes = bytes, .dropped_bytes = bytes};
  BenchArenaOptions open = sealed, kept_only = sealed;
  open.sealed = false;
  open.dropped_bytes = 0;
  kept_only.dropped_bytes = 0;
  const auto spans = std::max<std::uint64_t>(
      static_cast<std::uint64_t>(static_cast<double>(kSmallSpans) * options.scale), 1000);
  const BenchArenaOptions many{
      .kept_bytes = spans * kSmallSpanBytes, .chunk_bytes = 32 * kMiB, .spans = spans};
  std::vector<SleepCase> cases = {
      {.name = kUnprepared, .arena = sealed, .cycles = 5},
      {.name = kPrepared, .arena = kept_only, .pool = PoolChoice::kPrepared, .cycles = 1},
      {.name = kThroughPool, .arena = kept_only, .through_pool = true, .cycles = 1},
      {.name = kHashed, .arena = open, .cycles = 4},
      {.name = kChanged, .arena = open, .changed = kOnePercent, .cycles = 4},
      {.name = kPaused, .arena = sealed, .pause_seconds = 1, .cycles = 2},
      {.name = kManySpans, .arena = many, .cycles = 3}};
  if (options.big) {
    BenchArenaOptions big = kept_only;
    big.kept_bytes = Scaled(64 * kGiB, options.scale);
    cases.push_back({.name = kBig, .arena = big, .warm_host = false, .cycles = 2});
  }
  return cases;
}

bool GoalSuite::passed() const {
  return !judged ||
         std::all_of(rows.begin(), rows.end(), [](const GoalRow& row) { return row.met(); });
}

absl::StatusOr<GoalSuite> RunGoalSuite(Device& device, const GoalSuiteOptions& options) {
  if (!(options.scale > 0 && options.scale <= 1)) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "--scale"},
                     "must be above 0 and at most 1");
  }
  GoalSuite suite{.options = options, .judged = device.info().is_cuda && options.scale == 1};
  // Once, small and not counted: the driver takes what it takes for kernels and copies.
  SleepCase warm_up{.name = "warm-up",
                    .arena = {.kept_bytes = 8 * kMiB, .dropped_bytes = 8 * kMiB}};
  HOLDFAST_RETURN_IF_ERROR(RunSleepCase(device, warm_up).status());
  for (const SleepCase& c : GoalCases(options)) {
    HOLDFAST_ASSIGN_OR_RETURN(SleepResult result, RunSleepCase(device, c));
    AddRows(result, suite.rows);
    suite.cases.push_back(std::move(result));
  }
  if (options.neighbour == 0) return suite;
  const BenchArenaOptions shared{.kept_bytes = Scaled(4 * kGiB, options.scale),
                                 .dropped_bytes = Scaled(4 * kGiB, options.scale)};
  HOLDFAST_ASSIGN_OR_RETURN(suite.neighbour, RunNeighbour(device, shared, options.neighbour));
  if (!suite.neighbour.skipped.empty()) return suite;
  suite.rows.push_back({.item = "a neighbour gets the freed memory less one chunk at once",
                        .unit = "rounds",
                        .figure = static_cast<double>(suite.neighbour.granted),
                        .goal = static_cast<double>(suite.neighbour.rounds),
                        .at_least = true,
                        .note = suite.neighbour.refusal});
  return suite;
}

}  // namespace holdfast
