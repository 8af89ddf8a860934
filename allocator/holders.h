// External registrations in a transition: who keeps pages from going, and the hooks of the others.
// Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_HOLDERS_H_
#define HOLDFAST_ALLOCATOR_HOLDERS_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "allocator/transition.h"

namespace holdfast {

// kHeld naming the first holder without hooks of a span in t.groups.
absl::Status CheckHolders(const Transition& t);

// Sleep: calls before_unmap for every holder of a span in t.groups, in the order of registration.
// If one fails, those called before it have taken hold again; its error.
absl::Status LetGo(Transition& t);
// A sleep that does not happen: after_map for those called, in the opposite order. The first error;
// the others are called all the same.
absl::Status UndoLetGo(Transition& t);

// Wake: calls after_map for every holder of a span in `groups`, in the order opposite to their
// registration. On failure t.called tells who has taken hold.
absl::Status TakeHold(Transition& t, const std::vector<std::size_t>& groups);
// A wake that does not happen: before_unmap for those called. Errors are not heard: their pages go.
void UndoTakeHold(Transition& t);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_HOLDERS_H_
