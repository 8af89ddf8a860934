// A plug-in as a subject: an arena of the spans it declares, a graph for each of its steps.
//
// Behind each span lies a guard that nobody declared, filled with a pattern. Every step runs once
// eagerly before anything is captured, and a guard that changed then names the span whose size the
// plug-in lied about.
#ifndef HOLDFAST_TESTING_PLUGIN_SUBJECT_H_
#define HOLDFAST_TESTING_PLUGIN_SUBJECT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "allocator/span_io.h"
#include "testing/foreign_memory.h"
#include "testing/plugin.h"
#include "testing/subject.h"

namespace holdfast::testing {

class PluginSubject : public Subject {
 public:
  // The factory of this plug-in's subjects. Making one fails with: kOutOfMemory for more than the
  // device has; kForeignPointer naming a span whose declared end was written across; kDriver naming
  // the function that said no, with what it returned as the code; what the capture says. Plants
  // stale pointers and unsteady steps by itself, and what the plug-in can plant.
  static SubjectFactory Factory(std::shared_ptr<const Plugin> plugin);
  ~PluginSubject() override;

  std::string name() const override { return plugin_->name(); }
  Arena& arena() override { return *arena_; }
  Residency& residency() override { return *residency_; }
  Lane& lane() override { return *lane_; }
  GraphSet& graphs() override { return *graphs_; }
  SpanId workspace() override { return {}; }  // its scratch is spans of its own

  absl::StatusOr<Outputs> Run(const RunRequest& request) override;
  absl::Status Enqueue() override;
  absl::Status Refill() override;
  absl::StatusOr<LedgerReport> Memory() override { return ledger_->Report({arena_.get()}); }

 private:
  PluginSubject(Device& device, const SubjectOptions& options, std::shared_ptr<const Plugin> plugin)
      : device_(device), options_(options), plugin_(std::move(plugin)) {}

  absl::Status Build();
  absl::Status MakeInstance();
  absl::Status MakeArena();
  absl::Status ReserveSpans();
  absl::Status FillGuards();
  absl::Status CheckGuards();
  absl::Status WriteContents();
  absl::Status PlantBefore();
  absl::Status Capture();

  // What lies between the end of a span's bytes and the end of its guard.
  AddressRange GuardOf(std::size_t span) const;
  absl::Status RefillSpan(std::size_t span, Stream& stream, AddressRange range);
  // Asks the plug-in for a span's bytes.
  absl::Status Ask(std::size_t span, std::uint32_t step, std::uint64_t seed, bool poison_pads,
                   void* buffer, std::uint64_t bytes);
  absl::Status WriteSpan(std::size_t span, std::uint32_t step, std::uint64_t seed,
                         bool poison_pads);
  absl::Status WriteInputs(std::size_t step, const RunRequest& request);
  absl::StatusOr<std::size_t> StepOf(const GraphKey& key) const;
  Step MakeStep(std::size_t step);
  absl::Status EnqueueStep(std::size_t step, StepContext& context);
  std::vector<std::uint64_t> Addresses(const StepContext& context);

  Device& device_;
  SubjectOptions options_;
  std::shared_ptr<const Plugin> plugin_;
  void* self_ = nullptr;  // the plug-in's instance
  bool created_ = false;
  std::map<std::size_t, HostBuffer> rooms_;  // what refill hooks copy from, by span
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<ForeignMemory> foreign_;  // only with kStalePointer
  std::unique_ptr<Arena> arena_;
  std::vector<SpanId> spans_, guards_;
  std::unique_ptr<SpanIo> io_;
  std::unique_ptr<Residency> residency_;
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<GraphSet> graphs_;
  bool captured_ = false, eager_ = false;
  int later_captures_ = 0;  // what an unsteady step depends on
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_PLUGIN_SUBJECT_H_
