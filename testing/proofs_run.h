// Private to testing/: all proofs on one subject, made for them and ended by them.
#ifndef HOLDFAST_TESTING_PROOFS_RUN_H_
#define HOLDFAST_TESTING_PROOFS_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "testing/battery.h"

namespace holdfast::testing {

struct ProofsRun {
  std::string subject, device;
  std::vector<ProofResult> results;  // in the order of Proof
  std::string cannot_plant;          // why the fault has no place in this subject; "" if it has
};

// On a device of its own. With a fault: what the subject says kUnsupported to, or has no place for,
// is no error but cannot_plant.
absl::StatusOr<ProofsRun> RunProofs(const SubjectFactory& factory, const BatteryOptions& options,
                                    Fault plant);

// The control's verdict over what its run found.
ControlResult Judge(const NegativeControl& control, const ProofsRun& run);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_PROOFS_RUN_H_
