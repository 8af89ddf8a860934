#include "allocator/joint_transition.h"

#include <algorithm>
#include <utility>

#include "allocator/holders.h"
#include "allocator/restore_dropped.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::vector<ResidencyState*>> JointTransition::StatesOf(
    const std::vector<ArenaTags>& arenas) {
  std::vector<ResidencyState*> states;
  for (const ArenaTags& arena : arenas) {
    if (arena.residency == nullptr) {
      return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "arenas"},
                       "an arena without a residency");
    }
    states.push_back(arena.residency->state_.get());
  }
  return states;
}

absl::StatusOr<JointTransition> JointTransition::Begin(const std::vector<ArenaTags>& arenas,
                                                       StageClock& clock, bool asleep) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<ResidencyState*> states, StatesOf(arenas));
  JointTransition joint;
  HOLDFAST_ASSIGN_OR_RETURN(joint.locks_, LockArenas(states));
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    HOLDFAST_RETURN_IF_ERROR(CheckTags(states[i]->arena, arenas[i].tags));
    joint.parts_.push_back(
        Transition{.state = *states[i],
                   .clock = clock,
                   .tags = arenas[i].tags,
                   .faults = states[i]->faults,
                   .groups = SelectGroups(states[i]->arena, arenas[i].tags, asleep),
                   .called = {}});
  }
  return joint;
}

void JointTransition::TellWaiters(const std::vector<ArenaTags>& arenas, const absl::Status& error) {
  for (const ArenaTags& arena : arenas) {
    if (arena.residency != nullptr) arena.residency->state_->progress.Failed(arena.tags, error);
  }
}

bool JointTransition::empty() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const Transition& t) { return t.groups.empty(); });
}

absl::Status DropLocalMemory(Transition& t) {
  const std::vector<ArenaGroup>& groups = t.arena().groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const bool goes = std::find(t.groups.begin(), t.groups.end(), g) != t.groups.end();
    if (!groups[g].asleep && !goes) return absl::OkStatus();
  }
  t.clock.Begin(Stage::kLocalMemory);
  return t.arena().DropLocalMemory();
}

absl::Status HoldLocalMemory(Transition& t) {
  if (t.groups.empty()) return absl::OkStatus();
  t.clock.Begin(Stage::kLocalMemory);
  return t.arena().HoldLocalMemory();
}

void Publish(Transition& t, const std::vector<std::size_t>& groups, bool asleep) {
  if (groups.empty()) return;
  for (const std::size_t g : groups) t.arena().PublishAsleep(g, asleep);
  t.arena().BumpEpoch();
  t.state.progress.Published();
}

absl::Status CompleteGroups(Transition& t, const std::vector<std::size_t>& groups) {
  const auto needs_contents = [&](std::size_t g) { return NeedsContents(t.group(g)); };
  const bool any = std::any_of(groups.begin(), groups.end(), needs_contents);
  if (any) {
    t.clock.Begin(Stage::kFill);
    HOLDFAST_RETURN_IF_ERROR(t.device().Synchronize(*t.state.fills));
  }
  t.clock.Begin(Stage::kHolders);
  HOLDFAST_RETURN_IF_ERROR(TakeHold(t, groups));
  if (any) {
    t.clock.Begin(Stage::kRefill);
    for (const std::size_t g : groups) {
      if (!needs_contents(g)) continue;
      if (!t.faults.skip_refill) HOLDFAST_RETURN_IF_ERROR(CallRefills(t, g));
      const ArenaGroup& group = t.group(g);
      if (!group.sealed) continue;
      HOLDFAST_RETURN_IF_ERROR(
          t.device().SetAccess({group.extent.base, group.committed_bytes}, Access::kRead));
    }
  }
  for (const std::size_t g : groups) SettleContents(t, g);
  return absl::OkStatus();
}

void FinishReports(Transitions& parts, std::vector<TransitionReport>& reports) {
  StageClock& clock = parts.front().clock;
  clock.End();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const BackingPool& pool = *parts[i].state.pool;
    reports[i].backing_bytes = pool.held_bytes();
    reports[i].pageable_bytes = pool.pageable_bytes();
    reports[i].seconds = clock.total();
    reports[i].seconds_by_stage = clock.seconds();
  }
}

}  // namespace holdfast
