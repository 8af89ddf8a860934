// Dropped contents come back as declared: filled, left undefined, or refilled by their owner.
// Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_RESTORE_DROPPED_H_
#define HOLDFAST_ALLOCATOR_RESTORE_DROPPED_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "allocator/transition.h"

namespace holdfast {

// A dropped group of which any page is new: all of it comes back as declared.
bool NeedsContents(const ArenaGroup& group);

// Enqueues the fills of a group that needs contents, neighbouring spans of one value in one.
absl::Status EnqueueFills(Transition& t, std::size_t group);

// Calls the refill hooks of a group that needs contents, in the order its spans were reserved in,
// and waits for what they enqueued. The fills have run.
absl::Status CallRefills(Transition& t, std::size_t group);

// After everything else succeeded: which spans of the group are undefined now. Nothing counts as
// lost any more.
void SettleContents(Transition& t, std::size_t group);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_RESTORE_DROPPED_H_
