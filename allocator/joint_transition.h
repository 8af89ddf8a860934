// What a sleep and a wake over several arenas have in common. Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_JOINT_TRANSITION_H_
#define HOLDFAST_ALLOCATOR_JOINT_TRANSITION_H_

#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/transition.h"

namespace holdfast {

// The parts of one transition, with every arena's transition mutex held as long as this lives.
class JointTransition {
 public:
  // The states behind the arenas' residencies. kInvalidArgument for one that is missing.
  static absl::StatusOr<std::vector<ResidencyState*>> StatesOf(
      const std::vector<ArenaTags>& arenas);

  // Locks, checks the tags of each, and selects the groups that are to change: those that are
  // asleep (or awake). kInvalidArgument, kNotFound.
  static absl::StatusOr<JointTransition> Begin(const std::vector<ArenaTags>& arenas,
                                               StageClock& clock, bool asleep);

  // To those who wait for the tags: the transition that was to bring them has failed.
  static void TellWaiters(const std::vector<ArenaTags>& arenas, const absl::Status& error);

  Transitions& parts() { return parts_; }
  // No group of any part changes.
  bool empty() const;

 private:
  std::vector<std::unique_lock<std::mutex>> locks_;
  Transitions parts_;
};

// The device's local memory follows the arena: held unless all of its groups are asleep. Call
// before the pages of t.groups go, and before they come back. On failure as before.
absl::Status DropLocalMemory(Transition& t);
absl::Status HoldLocalMemory(Transition& t);

// Records the groups' new state for readers, and that graphs have to look again.
void Publish(Transition& t, const std::vector<std::size_t>& groups, bool asleep);

// Contents, hooks and access of groups whose pages are all back: waits for the fills, lets holders
// take hold, calls refills, and settles. On failure t.called tells who has taken hold.
absl::Status CompleteGroups(Transition& t, const std::vector<std::size_t>& groups);

// Clock and host memory, in every report.
void FinishReports(Transitions& parts, std::vector<TransitionReport>& reports);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_JOINT_TRANSITION_H_
