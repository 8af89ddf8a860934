// Poison: 0xFF, which is NaN in every float type, where contents must not matter.
//
// Three switches: scratch, here; pads, RunRequest::poison_pads; dropped spans at their wake,
// WakeContents::kPoison in their SpanSpec.
#ifndef HOLDFAST_TESTING_POISON_H_
#define HOLDFAST_TESTING_POISON_H_

#include "absl/status/status.h"
#include "testing/subject.h"

namespace holdfast::testing {

// Fills every committed scratch span that is awake, and waits. The next run's outputs must be the
// same.
absl::Status PoisonScratch(Subject& subject);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_POISON_H_
