// The proofs by name, and what comes of one.
#ifndef HOLDFAST_TESTING_PROOF_H_
#define HOLDFAST_TESTING_PROOF_H_

#include <optional>
#include <string>
#include <vector>

#include "testing/fault.h"

namespace holdfast::testing {

// In the order they run. One for each invariant of the arena's contract.
enum class Proof {
  kAddresses,     // every span is where it was, whatever slept, woke or failed
  kKeptBytes,     // every kept byte is what it was
  kDroppedBytes,  // dropped contents come back as declared, and are never silently read
  kFailures,      // a transition that fails at any device call leaves what was before
  kNoEarlyUnmap,  // no page goes while work that may touch it is admitted, scheduled or running
  kPointers,      // no graph holds a pointer outside audited spans
  kOutputs,       // outputs are the same bits, whatever the freed pages, pads and scratch held
  kFreedIsFree,   // what sleep reports as freed can be taken by another process at once
  kLedger,        // the ledger adds up to what the driver says
  kReservations,  // memory is reserved for a path if and only if the path is selected
  kBalance,       // everything that was made is given back at the end
  kCount_,        // how many, not a proof
};

const char* ProofName(Proof proof);     // "kept-bytes"
const char* ProofMeaning(Proof proof);  // one sentence
std::vector<Proof> AllProofs();
std::optional<Proof> ProofOfName(const std::string& name);

enum class Verdict {
  kHolds,
  kFails,
  kBlocked,  // another proof's failure kept it from being looked at
  kSkipped,  // the subject has nothing that it could be about, or cannot show it
};
const char* VerdictName(Verdict verdict);  // "holds", "fails", "blocked", "skipped"

struct ProofResult {
  Proof proof = Proof::kCount_;
  Verdict verdict = Verdict::kSkipped;
  // What was compared (holds), what was seen (fails), whose failure (blocked), why (skipped).
  std::string detail;
  std::optional<Proof> blocked_by;  // only with kBlocked
  double seconds = 0;

  std::string name() const { return ProofName(proof); }
};

// A fault, and the one proof that must fail when it is planted.
struct NegativeControl {
  Fault fault = Fault::kNone;
  Proof aimed = Proof::kCount_;
};
std::vector<NegativeControl> AllControls();

struct ControlResult {
  NegativeControl control;
  // Bites: the aimed proof failed, and no other. Otherwise see `detail`.
  bool bites = false;
  bool skipped = false;  // cannot be planted in this subject
  std::string detail;    // what the aimed proof said; or what went wrong; or why it is skipped
  double seconds = 0;

  std::string name() const { return FaultName(control.fault); }
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_PROOF_H_
