#include "testing/fault.h"

namespace holdfast::testing {

const char* FaultName(Fault fault) {
  switch (fault) {
    case Fault::kNone: return "none";
    case Fault::kFlippedBit: return "flipped-bit";
    case Fault::kSwappedChunks: return "swapped-chunks";
    case Fault::kStaleBackup: return "stale-backup";
    case Fault::kLostRefresh: return "lost-refresh";
    case Fault::kEarlyUnmap: return "early-unmap";
    case Fault::kMovedSpan: return "moved-span";
    case Fault::kLostBytes: return "lost-bytes";
    case Fault::kDirtyDrop: return "dirty-drop";
    case Fault::kHalfDone: return "half-done";
    case Fault::kLeak: return "leak";
    case Fault::kUnreleased: return "unreleased";
    case Fault::kHeldBack: return "held-back";
    case Fault::kHiddenMemory: return "hidden-memory";
    case Fault::kForeignWord: return "foreign-word";
    case Fault::kOtherOutput: return "other-output";
    case Fault::kWrongReservation: return "wrong-reservation";
    case Fault::kStalePointer: return "stale-pointer";
    case Fault::kUnsteadyStep: return "unsteady-step";
    case Fault::kStaleScratch: return "stale-scratch";
    case Fault::kPadsCount: return "pads-count";
    case Fault::kCount_: break;
  }
  return "?";
}

std::vector<Fault> AllFaults() {
  std::vector<Fault> faults;
  for (int i = 1; i < static_cast<int>(Fault::kCount_); ++i) {
    faults.push_back(static_cast<Fault>(i));
  }
  return faults;
}

std::optional<Fault> FaultOfName(const std::string& name) {
  for (const Fault fault : AllFaults()) {
    if (name == FaultName(fault)) return fault;
  }
  return std::nullopt;
}

bool PlantedBySubject(Fault fault) {
  return fault >= Fault::kStalePointer && fault < Fault::kCount_;
}

}  // namespace holdfast::testing
