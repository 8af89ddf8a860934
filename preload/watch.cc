#include "preload/watch.h"

#include <optional>
#include <utility>

namespace holdfast::preload {
namespace {

Fault WhenFreed(const CaptureTimes& capture, const Allocation& allocation) {
  if (capture.begin == 0) return Fault::kFreedBeforeInstantiate;
  if (allocation.died < capture.begin) return Fault::kFreedBeforeCapture;
  return allocation.died < capture.end ? Fault::kFreedDuringCapture : Fault::kFreedAfterCapture;
}

// What a pointer of a graph that was recorded then stands for, and what is wrong with it.
struct Verdict {
  AllocationPtr allocation;
  std::optional<Fault> fault;
};

Verdict JudgePlace(const CaptureTimes& capture, const History::Place& place) {
  if (place.live == nullptr) return {place.freed, WhenFreed(capture, *place.freed)};
  const bool came_later = capture.end != 0 && place.live->born > capture.end;
  // Nobody can have recorded a pointer into memory that was not there yet.
  if (came_later && place.freed != nullptr) return {place.freed, Fault::kReplaced};
  return {place.live, std::nullopt};
}

}  // namespace

const char* FaultText(Fault fault) {
  switch (fault) {
    case Fault::kFreedBeforeCapture: return "before the capture";
    case Fault::kFreedDuringCapture: return "during the capture";
    case Fault::kFreedAfterCapture: return "after the capture";
    case Fault::kFreedBeforeInstantiate: return "before the graph was instantiated";
    case Fault::kFreedWhileAlive: return "after the capture, while the graph lives";
    case Fault::kReplaced: return "after the capture, and its address given away";
  }
  return "at an unknown time";
}

void Watch::Instantiated(GraphFacts facts, const std::vector<Seen>& seen) {
  facts.number = next_number();
  Executable executable{.graph = facts.number};
  Judge(facts, seen, &executable);
  facts.alive = facts.exec != 0;
  if (facts.alive) {
    Destroyed(facts.exec);  // a handle that comes again was destroyed unseen
    for (const auto& [allocation, held] : executable.holds) {
      held_by_[allocation.get()].insert(facts.exec);
    }
    executables_[facts.exec] = std::move(executable);
  }
  graphs_.push_back(std::move(facts));
}

void Watch::Updated(std::uint64_t exec, GraphFacts facts, const std::vector<Seen>& seen) {
  const auto found = executables_.find(exec);
  if (found == executables_.end()) {
    facts.exec = exec;
    return Instantiated(std::move(facts), seen);
  }
  Release(found->second);
  GraphFacts& known = graphs_[found->second.graph - 1];
  facts.number = known.number;
  facts.exec = exec;
  facts.alive = true;
  facts.updates = known.updates + 1;
  known = std::move(facts);
  Judge(known, seen, &found->second);
  for (const auto& [allocation, held] : found->second.holds) {
    held_by_[allocation.get()].insert(exec);
  }
}

void Watch::ChangedOneNode(std::uint64_t exec) {
  const auto found = executables_.find(exec);
  if (found == executables_.end()) return;
  ++graphs_[found->second.graph - 1].changed_node_by_node;
  Release(found->second);
}

void Watch::Destroyed(std::uint64_t exec) {
  const auto found = executables_.find(exec);
  if (found == executables_.end()) return;
  graphs_[found->second.graph - 1].alive = false;
  Release(found->second);
  executables_.erase(found);
}

void Watch::Release(Executable& executable) {
  const std::uint64_t exec = graphs_[executable.graph - 1].exec;
  for (const auto& [allocation, held] : executable.holds) {
    const auto holders = held_by_.find(allocation.get());
    if (holders == held_by_.end()) continue;
    holders->second.erase(exec);
    if (holders->second.empty()) held_by_.erase(holders);
  }
  executable.holds.clear();
}

void Watch::Judge(const GraphFacts& facts, const std::vector<Seen>& seen, Executable* executable) {
  for (const Seen& one : seen) {
    if (one.place.live == nullptr && one.place.freed == nullptr) continue;
    const Verdict verdict = JudgePlace(facts.capture, one.place);
    if (verdict.fault.has_value()) {
      Find(facts, *verdict.fault, verdict.allocation, one.reference);
      Finding& finding = findings_[found_.at({facts.number, verdict.allocation.get()})];
      if (finding.words == 1) finding.ending = one.place.ending;
      continue;
    }
    Held& held = executable->holds[verdict.allocation];
    ++held.words;
    if (held.references.size() < kReferencesKept) held.references.push_back(one.reference);
  }
}

void Watch::Freed(const AllocationPtr& allocation) {
  const auto holders = held_by_.find(allocation.get());
  if (holders == held_by_.end()) return;
  for (const std::uint64_t exec : holders->second) {
    Executable& executable = executables_.at(exec);
    const auto held = executable.holds.find(allocation);
    if (held == executable.holds.end()) continue;
    const GraphFacts& facts = graphs_[executable.graph - 1];
    for (const Reference& reference : held->second.references) {
      Find(facts, Fault::kFreedWhileAlive, allocation, reference);
    }
    findings_[found_.at({facts.number, allocation.get()})].words = held->second.words;
    executable.holds.erase(held);
  }
  held_by_.erase(holders);
}

void Watch::ForgetExecutables() {
  for (auto& [exec, executable] : executables_) graphs_[executable.graph - 1].alive = false;
  executables_.clear();
  held_by_.clear();
}

void Watch::Find(const GraphFacts& facts, Fault fault, const AllocationPtr& allocation,
                 const Reference& reference) {
  const auto [entry, added] =
      found_.try_emplace({facts.number, allocation.get()}, findings_.size());
  if (added) {
    findings_.push_back({.graph = facts.number,
                         .capture = facts.capture,
                         .fault = fault,
                         .allocation = allocation});
  }
  Finding& finding = findings_[entry->second];
  ++finding.words;
  if (finding.references.size() < kReferencesKept) finding.references.push_back(reference);
}

}  // namespace holdfast::preload
