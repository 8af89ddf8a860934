// Sleep, over one arena or several: everything is judged before anything moves, copied before
// anything is unmapped, and undone if any of it fails.
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/copy_out.h"
#include "allocator/holders.h"
#include "allocator/host_rooms.h"
#include "allocator/joint_transition.h"
#include "allocator/residency.h"
#include "allocator/take_away.h"
#include "allocator/wake_pipeline.h"
#include "device/error.h"

namespace holdfast {
namespace {

// Closed gates, opened again when the transition ends, whatever its result.
class ClosedGates {
 public:
  ClosedGates() = default;
  ClosedGates(const ClosedGates&) = delete;
  ClosedGates& operator=(const ClosedGates&) = delete;
  ~ClosedGates() {
    for (AdmissionGate* gate : closed_) gate->Reopen();
  }

  // kDeadlineExceeded: nothing has changed, once this is destroyed.
  absl::Status Close(const Transition& t, Residency::Deadline deadline) {
    AdmissionGate& gate = t.arena().gate();
    HOLDFAST_RETURN_IF_ERROR(t.faults.unmap_early ? gate.CloseWithoutFence(deadline)
                                                  : gate.CloseAndDrain(t.device(), deadline));
    closed_.push_back(&gate);
    return absl::OkStatus();
  }

 private:
  std::vector<AdmissionGate*> closed_;
};

// Bytes that go whatever their contents are worth; what is copied is counted when it is known.
TransitionReport CountPages(const Transition& t) {
  TransitionReport report;
  for (const std::size_t g : t.groups) {
    const ArenaGroup& group = t.group(g);
    TagTransition& row = RowOf(report, group.spec.tag);
    for (const ArenaChunk& chunk : group.chunks) {
      report.freed_bytes += chunk.range.bytes;
      if (group.dropped()) row.dropped_bytes += chunk.range.bytes;
    }
  }
  return report;
}

absl::Status LetGoAll(Transitions& parts) {
  parts.front().clock.Begin(Stage::kHolders);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    absl::Status gone = LetGo(parts[i]);
    if (gone.ok()) continue;
    while (i-- > 0) UndoLetGo(parts[i]).IgnoreError();
    return gone;
  }
  return absl::OkStatus();
}

// The end of a sleep that failed while every page was still there.
absl::Status TakeHoldAgain(Transitions& parts, absl::Status cause) {
  absl::Status held;
  for (Transition& t : parts) held.Update(UndoLetGo(t));
  if (held.ok()) return cause;
  return Annotate(cause, absl::StrCat("and afterwards ", held.ToString()));
}

absl::Status CopyOutAll(Transitions& parts, std::vector<RoomPlan>& plans,
                        std::vector<TransitionReport>& reports) {
  std::list<CopyOut> copies;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    copies.emplace_back(parts[i], std::move(plans[i]));
  }
  absl::Status status;
  for (CopyOut& copy : copies) {
    if (status.ok()) status = copy.Start();
  }
  for (CopyOut& copy : copies) {
    if (status.ok()) status = copy.Continue();
  }
  auto report = reports.begin();
  for (CopyOut& copy : copies) {
    if (status.ok()) status = copy.Finish(*report++);
  }
  if (status.ok()) return status;
  for (Transition& t : parts) SettleStreams(t);
  return status;
}

absl::Status DropAllLocalMemory(Transitions& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    absl::Status dropped = DropLocalMemory(parts[i]);
    if (dropped.ok()) continue;
    while (i-- > 0) dropped.Update(HoldLocalMemory(parts[i]));
    return dropped;
  }
  return absl::OkStatus();
}

absl::Status BringBack(Transition& t) {
  t.faults = {.skip_holders = t.faults.skip_holders};
  HOLDFAST_RETURN_IF_ERROR(HoldLocalMemory(t));
  WakePipeline pipeline(t, WakePipeline::Order::kKeptFirst, /*announce=*/false);
  HOLDFAST_RETURN_IF_ERROR(pipeline.Plan());
  while (!pipeline.done()) HOLDFAST_RETURN_IF_ERROR(pipeline.Step());
  return CompleteGroups(t, t.groups);
}

// Back to the state before a sleep whose pages had begun to go. Returns the error that the sleep
// ends with.
absl::Status UndoSleep(Transitions& parts, const absl::Status& cause) {
  std::vector<bool> lost(parts.size());
  absl::Status undone;
  for (Transition& t : parts) t.called.clear();  // whoever has let go takes hold again below
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const std::size_t g : parts[i].groups) {
      for (const ArenaChunk& chunk : parts[i].group(g).chunks) lost[i] = lost[i] || chunk.lost;
    }
    if (undone.ok()) undone = BringBack(parts[i]);
  }
  if (undone.ok()) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      // Undefined spans may have come of it: graphs have to look again.
      if (lost[i]) parts[i].arena().BumpEpoch();
    }
    return cause;
  }
  for (Transition& t : parts) {
    UndoTakeHold(t);
    RemoveAll(t);
    // Held after all, if that fails too: it costs memory, no contents.
    DropLocalMemory(t).IgnoreError();
    Publish(t, t.groups, /*asleep=*/true);
  }
  return Annotate(cause,
                  absl::StrCat("sleep could neither finish nor be undone (", undone.ToString(),
                               "); the tags are asleep, their backups complete"));
}

}  // namespace

absl::StatusOr<std::vector<TransitionReport>> SleepTogether(const std::vector<ArenaTags>& arenas,
                                                            Residency::Deadline deadline) {
  StageClock clock;
  HOLDFAST_ASSIGN_OR_RETURN(JointTransition joint,
                            JointTransition::Begin(arenas, clock, /*asleep=*/false));
  Transitions& parts = joint.parts();
  clock.Begin(Stage::kPrepare);
  std::vector<TransitionReport> reports;
  for (Transition& t : parts) {
    HOLDFAST_RETURN_IF_ERROR(RemoveLeftovers(t));
    HOLDFAST_RETURN_IF_ERROR(CheckHolders(t));
    reports.push_back(CountPages(t));
  }
  if (joint.empty()) {
    FinishReports(parts, reports);
    return reports;
  }
  // Rooms are made while work drains.
  std::vector<std::unique_ptr<BackingOrder>> orders;
  HOLDFAST_ASSIGN_OR_RETURN(std::vector<RoomPlan> plans, OrderRooms(parts, orders));
  clock.Begin(Stage::kDrain);
  ClosedGates gates;
  for (const Transition& t : parts) HOLDFAST_RETURN_IF_ERROR(gates.Close(t, deadline));
  // Before anything is compared: a holder that writes has stopped then.
  HOLDFAST_RETURN_IF_ERROR(LetGoAll(parts));
  absl::Status ready = CopyOutAll(parts, plans, reports);
  if (ready.ok()) ready = DropAllLocalMemory(parts);
  if (!ready.ok()) return TakeHoldAgain(parts, ready);
  if (absl::Status taken = TakeAway(parts); !taken.ok()) return UndoSleep(parts, taken);
  for (Transition& t : parts) Publish(t, t.groups, /*asleep=*/true);
  FinishReports(parts, reports);
  return reports;
}

absl::StatusOr<TransitionReport> Residency::Sleep(const std::vector<std::string>& tags,
                                                  Deadline deadline) {
  HOLDFAST_ASSIGN_OR_RETURN(std::vector<TransitionReport> reports,
                            SleepTogether({{this, tags}}, deadline));
  return std::move(reports.front());
}

}  // namespace holdfast
