// A start, planned without starting: the whole budget of device memory by owner, before any of it
// is taken; and the same table with what was measured beside it.
//
// The arena's lines are exact: the same code lays out the same spans, and every bucket's scratch is
// measured as at a start, over addresses that nothing stands behind. The driver's lines are
// estimates from measured constants (start_plan.cc names their source).
#ifndef HOLDFAST_RUNTIME_START_PLAN_H_
#define HOLDFAST_RUNTIME_START_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/ledger.h"
#include "device/device.h"
#include "runtime/engine.h"

namespace holdfast {

enum class PlanKind {
  kArena,   // pages of spans: planned to the granule
  kDriver,  // what the driver takes for itself: estimated
};

struct PlanLine {
  std::string owner;  // as in the ledger: "weights/immutable", "context"
  PlanKind kind = PlanKind::kArena;
  std::uint64_t planned_bytes = 0;
  std::optional<std::int64_t> measured_bytes;  // after a start
  std::string why;

  // An arena's line within one granule of what was measured, a driver's within 10 % or one granule;
  // true before a start.
  bool holds(std::uint64_t granularity) const;
};

struct StartPlan {
  DeviceInfo device;
  std::vector<PlanLine> lines;
  KvPlan kv;                     // as planned: its measured order is fed with the lines
  std::string kv_refusal;        // why a start would be refused; empty: it would not
  std::uint64_t operations = 0;  // of all buckets

  std::uint64_t planned_bytes() const;  // of all lines
  const PlanLine* Find(const std::string& owner) const;
  // What the bytes would hold as cache, in whole tokens.
  std::int64_t TokensOf(std::uint64_t bytes) const;
  // Every line that was measured holds.
  bool holds() const;
};

// Plans a start of the model on `device` (what OpenDevice says of it, or a description of one: is
// it a GPU, granularity, capacity, multiprocessors). Takes no memory of any device. Errors as
// Engine::Create up to the profile; kUnsupported for a model that cannot reserve without loading. A
// cache that does not fit is no error: see kv_refusal.
absl::StatusOr<StartPlan> PlanStart(const DeviceInfo& device, std::unique_ptr<Model> model,
                                    const EngineOptions& options);

// Puts the ledger's figures beside the planned ones; owners that were not planned get a line of 0.
void PutMeasured(const LedgerReport& ledger, StartPlan& plan);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_START_PLAN_H_
