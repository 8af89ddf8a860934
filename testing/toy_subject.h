// A small built-in subject: two kernels over spans of every role, on any device. The kit's own
// tests run on it, and it shows what a subject of one's own looks like.
//
//   weights (immutable, sealed)   tables (immutable, refilled by a hook)   state (mutable: a
//   counter) kv (cache, poisoned at wake)  workspace (scratch)
#ifndef HOLDFAST_TESTING_TOY_SUBJECT_H_
#define HOLDFAST_TESTING_TOY_SUBJECT_H_

#include <memory>
#include <vector>

#include "testing/foreign_memory.h"
#include "testing/subject.h"

namespace holdfast::testing {

class ToySubject : public Subject {
 public:
  // Plants every fault of PlantedBySubject. kForeignPointer with kStalePointer: the capture
  // refuses.
  static absl::StatusOr<std::unique_ptr<Subject>> Create(Device& device,
                                                         const SubjectOptions& options);
  ~ToySubject() override;

  std::string name() const override { return "toy"; }
  Arena& arena() override { return *arena_; }
  Residency& residency() override { return *residency_; }
  Lane& lane() override { return *lane_; }
  GraphSet& graphs() override { return *graphs_; }
  SpanId workspace() override { return workspace_; }

  absl::StatusOr<Outputs> Run(const RunRequest& request) override;
  absl::Status Enqueue() override;
  absl::StatusOr<LedgerReport> Memory() override { return ledger_->Report({arena_.get()}); }
  std::vector<PathUse> Paths() override;

 private:
  ToySubject(Device& device, const SubjectOptions& options) : device_(device), options_(options) {}

  absl::Status Build();
  absl::Status ReserveSpans();
  absl::Status LoadWeights();
  absl::Status Capture();
  absl::StatusOr<SpanId> Reserve(SpanSpec spec);
  absl::Status RefillTable(Stream& stream, AddressRange span);
  absl::StatusOr<Step> MakeStep(const GraphKey& key);
  absl::Status EnqueueStep(StepContext& step, std::int32_t rows);
  void SetInputs(const RunRequest& request, std::int32_t rows);

  Device& device_;
  SubjectOptions options_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<ForeignMemory> foreign_;  // only with kStalePointer
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Residency> residency_;
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<GraphSet> graphs_;
  HostBuffer table_;  // what the refill hook copies from
  SpanId weights_, spare_weights_, tables_, counter_, kv_, input_, output_, workspace_;
  const HostSpan* host_input_ = nullptr;   // the count of real rows, then the rows
  const HostSpan* host_output_ = nullptr;  // rows
  int captures_ = 0;  // how often a step was enqueued: what an unsteady step depends on
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_TOY_SUBJECT_H_
