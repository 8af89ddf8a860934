// A program of somebody else's: it steps the warmth of rods through captured graphs, one for each
// number of rods, and gives its memory back in between. It knows holdfast's libraries and nothing
// of its repository, and nothing of the test kit: see subject.h for that.
#ifndef HOLDFAST_TESTS_OUTSIDE_HEAT_RODS_H_
#define HOLDFAST_TESTS_OUTSIDE_HEAT_RODS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heat/ops.h"
#include "holdfast/allocator/ledger.h"
#include "holdfast/allocator/residency.h"
#include "holdfast/graphs/graph_set.h"

namespace heat {

// What can be wrong with such a program; planted by its tests.
enum class Mistake {
  kNone,
  kStalePointer,   // a step reads a table that was never moved into the arena
  kUnsteadyStep,   // a step writes to another place each time it is captured
  kAddsToScratch,  // a step reads scratch before it writes it
  kPadsCount,      // what pads hold changes real rods
};

struct StepInputs {
  std::uint64_t seed = 1;  // equal seeds, equal warmth
  bool poison_pads = false;
  bool eager = false;  // no graph
};

class Rods {
 public:
  static absl::StatusOr<std::unique_ptr<Rods>> Create(holdfast::Device& device,
                                                      Mistake mistake = Mistake::kNone);
  ~Rods();

  // Sets the rods of inputs.seed, steps every bucket once and waits. Warmth of the real rods, by
  // the graph's name.
  absl::StatusOr<std::map<std::string, std::vector<float>>> Step(const StepInputs& inputs);
  // What Step must give for the bucket of so many rods, by plain arithmetic.
  static std::vector<float> Expected(std::uint64_t seed, std::int32_t bucket);
  // One replay of the largest bucket, enqueued.
  absl::Status Enqueue() { return graphs_->graphs().back()->Replay(); }

  holdfast::Arena& arena() { return *arena_; }
  holdfast::Residency& residency() { return *residency_; }
  holdfast::Lane& lane() { return *lane_; }
  holdfast::GraphSet& graphs() { return *graphs_; }
  holdfast::SpanId workspace() const { return workspace_; }
  absl::StatusOr<holdfast::LedgerReport> Memory() { return ledger_.Report({arena_.get()}); }

 private:
  Rods(holdfast::Device& device, Mistake mistake)
      : device_(device), mistake_(mistake), ledger_(device) {}

  absl::Status MakeArena();
  absl::Status ReserveSpans();
  absl::Status LoadTables();
  absl::Status Capture();
  absl::Status EnqueueStep(holdfast::StepContext& step, std::int32_t rods);
  absl::Status Run(holdfast::Graph& graph, bool eager);
  void SetInputs(std::int32_t rods, const StepInputs& inputs);

  holdfast::Device& device_;
  const Mistake mistake_;
  holdfast::Ledger ledger_;
  holdfast::HostBuffer table_;  // conductivity, then sources: what the spans are filled from
  std::unique_ptr<holdfast::Arena> arena_;
  std::unique_ptr<holdfast::Residency> residency_;
  std::unique_ptr<holdfast::Lane> lane_;
  std::unique_ptr<holdfast::GraphSet> graphs_;
  holdfast::SpanId conductivity_, sources_, warmth_, steps_, log_, workspace_;
  const holdfast::HostSpan* in_ = nullptr;   // how many rods are real, then their warmth
  const holdfast::HostSpan* out_ = nullptr;  // warmth
  std::uint64_t enqueued_ = 0;
};

}  // namespace heat

#endif  // HOLDFAST_TESTS_OUTSIDE_HEAT_RODS_H_
