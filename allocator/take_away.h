// The pages of a transition go: in order at sleep, as far as possible when a wake is undone.
// Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_TAKE_AWAY_H_
#define HOLDFAST_ALLOCATOR_TAKE_AWAY_H_

#include "absl/status/status.h"
#include "allocator/transition.h"

namespace holdfast {

// Unmaps everything of all parts, then releases it: kept groups first, so that a failure before the
// first dropped chunk has gone loses nothing. Stops at the first error.
absl::Status TakeAway(Transitions& parts);

// Waits for our own work and removes every page of t.groups, as far as that goes; the rest stays
// recorded. Nothing of them counts as having contents afterwards.
void RemoveAll(Transition& t);

// Another attempt at the pieces that an undone transition could not give back: of groups of the
// tags that are asleep.
absl::Status RemoveLeftovers(Transition& t);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_TAKE_AWAY_H_
