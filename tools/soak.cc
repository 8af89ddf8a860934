#include "tools/soak.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/mla_model.h"
#include "tools/progress.h"
#include "tools/soak_cycle.h"

namespace holdfast {
namespace {

constexpr std::int32_t kCheckHostEvery = 10;  // cycles
constexpr std::int32_t kShowEvery = 100;

// A part of the soak with an engine of its own.
struct Leg {
  std::int32_t cycles = 0;
  bool verify = true;
};

// The last quarter runs without verification; a planted fault is looked for with it.
std::vector<Leg> LegsOf(const SoakOptions& options) {
  const std::int32_t without = options.inject == Injection::kNone ? options.cycles / 4 : 0;
  std::vector<Leg> legs = {{.cycles = options.cycles - without}};
  if (without > 0) legs.push_back({.cycles = without, .verify = false});
  return legs;
}

EngineOptions MakeEngineOptions(const SoakOptions& options, bool verify) {
  EngineOptions engine;
  engine.max_batch = 4;
  engine.max_prefill_tokens = 32;
  engine.max_sequence = 128;
  engine.chunk_bytes = options.chunk_bytes;
  engine.residency.verify = verify;
  engine.plant_stale_pointer = options.inject == Injection::kStalePointer;
  return engine;
}

std::string AtCycle(std::int32_t cycle, const Failure& failure) {
  return absl::StrCat("cycle ", cycle, ": ", failure.Text());
}

void Show(const SoakReport& report) {
  if (report.cycles % kShowEvery != 0 || isatty(STDERR_FILENO) == 0) return;
  ClearProgress();
  std::fprintf(stderr, "%d of %d cycles\n", report.cycles, report.options.cycles);
}

// Runs one leg; its first broken invariant is in the report.
absl::Status RunLeg(Device& device, testing::Neighbour* neighbour, const Leg& leg,
                    SoakReport& report) {
  const SoakOptions& options = report.options;
  ShowStage("starting an engine");
  HOLDFAST_ASSIGN_OR_RETURN(
      std::unique_ptr<MlaModel> model,
      MlaModel::Open(options.model, device.info().is_cuda ? DType::kBF16 : DType::kF32));
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(device, std::move(model), MakeEngineOptions(options, leg.verify));
  if (IsErrorKind(engine.status(), ErrorKind::kForeignPointer)) {
    report.failure =
        AtCycle(0, {ReasonOf(engine.status()), std::string(engine.status().message())});
    return absl::OkStatus();
  }
  if (!engine.ok()) return engine.status();
  SoakCycles cycles(**engine, neighbour, options.seed + (leg.verify ? 0 : 1), report);
  HOLDFAST_RETURN_IF_ERROR(cycles.Begin());
  const std::int32_t warm_up = std::min(3 * kCheckHostEvery, leg.cycles / 2);
  for (std::int32_t i = 1; i <= leg.cycles; ++i) {
    ShowStage(absl::StrCat("cycle ", report.cycles + 1, " of ", options.cycles));
    if (options.inject != Injection::kNone && i == leg.cycles / 2 + 1) cycles.Plant(options.inject);
    Failure failure = cycles.Run();
    const bool check = i == warm_up || i == leg.cycles || (i > warm_up && i % kCheckHostEvery == 0);
    if (!failure.failed() && check) failure = cycles.CheckHostMemory();
    if (failure.failed()) {
      report.failure = AtCycle(report.cycles + 1, failure);
      return absl::OkStatus();
    }
    ++report.cycles;
    Show(report);
  }
  return absl::OkStatus();
}

// After an engine has gone nothing of it may be left.
Failure CheckNothingLeft(Device& device) {
  const absl::StatusOr<MemoryUse> memory = device.Memory();
  if (memory.ok() && memory->own_bytes == 0 && device.calls().Balanced()) return {};
  return {"leak", "an engine that ended left device memory, mappings or buffers"};
}

}  // namespace

absl::StatusOr<SoakReport> Soak(const SoakOptions& options) {
  if (options.cycles < 1) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "--cycles"},
                     "must be at least 1");
  }
  SoakReport report{.options = options, .version = HOLDFAST_VERSION};
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::unique_ptr<Device> device,
      OpenDevice(options.device, {.host_capacity_bytes = options.host_capacity_bytes}));
  report.device = device->info().name;
  report.driver = device->info().driver;
  std::unique_ptr<testing::Neighbour> neighbour;
  if (options.scribble) {
    HOLDFAST_ASSIGN_OR_RETURN(
        neighbour,
        testing::Neighbour::Start(testing::ScribblerInThisProgram(), device->info().spec));
  }
  const auto start = std::chrono::steady_clock::now();
  for (const Leg& leg : LegsOf(options)) {
    HOLDFAST_RETURN_IF_ERROR(RunLeg(*device, neighbour.get(), leg, report));
    if (!report.passed()) break;
    if (Failure f = CheckNothingLeft(*device); f.failed()) {
      report.failure = AtCycle(report.cycles, f);
      break;
    }
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ClearProgress();
  return report;
}

std::string SoakText(const SoakReport& r) {
  std::string out = absl::StrFormat("holdfast soak on %s (driver %s), seed %d: %d of %d cycles\n",
                                    r.device, r.driver, r.options.seed, r.cycles, r.options.cycles);
  for (const auto& [what, count] : r.counts) absl::StrAppendFormat(&out, "  %8d %s\n", count, what);
  absl::StrAppendFormat(&out,
                        "host memory grew by at most %d B; at most %d B of device memory without "
                        "an owner\n",
                        r.host_growth_bytes, r.unexplained_bytes);
  out += r.passed() ? "PASS\n" : absl::StrCat("FAIL: ", r.failure, "\n");
  return out;
}

std::string SoakJson(const SoakReport& r) {
  const nlohmann::json document = {{"name", "holdfast soak"},
                                   {"version", r.version},
                                   {"device", r.device},
                                   {"driver", r.driver},
                                   {"model", r.options.model},
                                   {"seed", r.options.seed},
                                   {"inject", InjectionName(r.options.inject)},
                                   {"cycles", r.cycles},
                                   {"cycles_wanted", r.options.cycles},
                                   {"counts", r.counts},
                                   {"host_growth_bytes", r.host_growth_bytes},
                                   {"unexplained_bytes", r.unexplained_bytes},
                                   {"seconds", r.seconds},
                                   {"pass", r.passed()},
                                   {"failure", r.failure}};
  return document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace holdfast
