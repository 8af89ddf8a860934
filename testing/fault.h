// The faults that negative controls plant, and who plants each.
#ifndef HOLDFAST_TESTING_FAULT_H_
#define HOLDFAST_TESTING_FAULT_H_

#include <optional>
#include <string>
#include <vector>

namespace holdfast::testing {

enum class Fault {
  kNone,
  // Planted into the subject's transitions (ResidencyFaults): any subject will do.
  kFlippedBit,     // one bit of a backup flips while asleep
  kSwappedChunks,  // wake exchanges two kept pieces
  kStaleBackup,    // sleep takes every backup for clean, whatever changed since
  kLostRefresh,    // refill hooks are not called
  kEarlyUnmap,     // sleep does not wait for work
  // Planted by the kit beside the subject: any subject will do.
  kMovedSpan,         // a span is reported elsewhere after a wake
  kLostBytes,         // a kept span is written to after a wake
  kDirtyDrop,         // a dropped span comes back with other bytes than declared
  kHalfDone,          // a failed transition leaves one tag in the other state
  kLeak,              // a failed transition keeps a chunk
  kUnreleased,        // a chunk is never given back
  kHeldBack,          // sleep reports memory as free that it still holds
  kHiddenMemory,      // memory is taken behind the ledger's back
  kForeignWord,       // a word of a captured graph points to memory that nobody declared
  kOtherOutput,       // one bit of the outputs differs after a wake
  kWrongReservation,  // memory is reserved for a path that is not taken
  // Planted by the subject, which knows its steps: the factory is asked, and says kUnsupported if
  // it cannot.
  kStalePointer,  // a captured step uses memory outside the arena
  kUnsteadyStep,  // a step uses other addresses each time it is captured
  kStaleScratch,  // a step reads scratch that it has not written
  kPadsCount,     // real rows depend on what the pads hold
  kCount_,        // how many, not a fault
};

const char* FaultName(Fault fault);  // "flipped-bit"
std::optional<Fault> FaultOfName(const std::string& name);
std::vector<Fault> AllFaults();  // without kNone
// True for those that the factory has to plant (SubjectOptions::plant).
bool PlantedBySubject(Fault fault);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_FAULT_H_
