#include "testing/proof.h"

namespace holdfast::testing {

const char* ProofName(Proof proof) {
  switch (proof) {
    case Proof::kAddresses: return "addresses";
    case Proof::kKeptBytes: return "kept-bytes";
    case Proof::kDroppedBytes: return "dropped-bytes";
    case Proof::kFailures: return "failures";
    case Proof::kNoEarlyUnmap: return "no-early-unmap";
    case Proof::kPointers: return "pointers";
    case Proof::kOutputs: return "outputs";
    case Proof::kFreedIsFree: return "freed-is-free";
    case Proof::kLedger: return "ledger";
    case Proof::kReservations: return "reservations";
    case Proof::kBalance: return "balance";
    case Proof::kCount_: break;
  }
  return "?";
}

const char* ProofMeaning(Proof proof) {
  switch (proof) {
    case Proof::kAddresses:
      return "every span is where it was after any sequence of sleeps, wakes and failures";
    case Proof::kKeptBytes: return "every kept byte is what it was";
    case Proof::kDroppedBytes:
      return "dropped contents come back as declared and are never silently read";
    case Proof::kFailures:
      return "a transition that fails at any device call leaves what was before and can be retried";
    case Proof::kNoEarlyUnmap:
      return "no page goes while work that may touch it is admitted, scheduled or running";
    case Proof::kPointers: return "no graph holds a pointer outside audited spans";
    case Proof::kOutputs:
      return "outputs are the same bits, whatever freed pages, pads and scratch held meanwhile";
    case Proof::kFreedIsFree:
      return "what sleep reports as freed can be taken by somebody else at once";
    case Proof::kLedger: return "the ledger adds up to what the driver says";
    case Proof::kReservations:
      return "memory is reserved for a path if and only if the path is selected";
    case Proof::kBalance: return "everything that was made is given back at the end";
    case Proof::kCount_: break;
  }
  return "?";
}

std::vector<Proof> AllProofs() {
  std::vector<Proof> proofs;
  for (int i = 0; i < static_cast<int>(Proof::kCount_); ++i) {
    proofs.push_back(static_cast<Proof>(i));
  }
  return proofs;
}

std::optional<Proof> ProofOfName(const std::string& name) {
  for (const Proof proof : AllProofs()) {
    if (name == ProofName(proof)) return proof;
  }
  return std::nullopt;
}

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds: return "holds";
    case Verdict::kFails: return "fails";
    case Verdict::kBlocked: return "blocked";
    case Verdict::kSkipped: return "skipped";
  }
  return "?";
}

std::vector<NegativeControl> AllControls() {
  return {
      {Fault::kFlippedBit, Proof::kKeptBytes},    {Fault::kSwappedChunks, Proof::kKeptBytes},
      {Fault::kStaleBackup, Proof::kKeptBytes},   {Fault::kLostRefresh, Proof::kDroppedBytes},
      {Fault::kEarlyUnmap, Proof::kNoEarlyUnmap}, {Fault::kMovedSpan, Proof::kAddresses},
      {Fault::kLostBytes, Proof::kKeptBytes},     {Fault::kDirtyDrop, Proof::kDroppedBytes},
      {Fault::kHalfDone, Proof::kFailures},       {Fault::kLeak, Proof::kFailures},
      {Fault::kUnreleased, Proof::kBalance},      {Fault::kHeldBack, Proof::kFreedIsFree},
      {Fault::kHiddenMemory, Proof::kLedger},     {Fault::kForeignWord, Proof::kPointers},
      {Fault::kOtherOutput, Proof::kOutputs},     {Fault::kWrongReservation, Proof::kReservations},
      {Fault::kStalePointer, Proof::kPointers},   {Fault::kUnsteadyStep, Proof::kPointers},
      {Fault::kStaleScratch, Proof::kOutputs},    {Fault::kPadsCount, Proof::kOutputs},
  };
}

}  // namespace holdfast::testing
