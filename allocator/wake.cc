// Wake, over one arena or several: pages and contents come back, and only when all of it is there
// does anything count as awake. A failure takes back what this wake made; the backups stay.
#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "allocator/holders.h"
#include "allocator/joint_transition.h"
#include "allocator/residency.h"
#include "allocator/take_away.h"
#include "allocator/wake_pipeline.h"
#include "device/error.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

// Between two attempts while another process holds the memory.
constexpr Clock::duration kShortestWait = std::chrono::milliseconds(1);
constexpr Clock::duration kLongestWait = std::chrono::milliseconds(50);

// A quick refusal, before a single page is made.
absl::Status CheckFreeMemory(const Transitions& parts) {
  struct Need {
    std::uint64_t bytes = 0;
    std::vector<std::string> tags;
  };
  std::map<Device*, Need> needs;
  for (const Transition& t : parts) {
    Need& need = needs[&t.device()];
    need.tags.insert(need.tags.end(), t.tags.begin(), t.tags.end());
    for (const std::size_t g : t.groups) {
      for (const ArenaChunk& chunk : t.group(g).chunks) {
        need.bytes += chunk.chunk ? 0 : chunk.range.bytes;
      }
    }
  }
  for (const auto& [device, need] : needs) {
    const absl::StatusOr<MemoryUse> memory = device->Memory();
    if (!memory.ok() || memory->free_bytes >= need.bytes) continue;
    return MakeError({.kind = ErrorKind::kOutOfMemory,
                      .object = absl::StrJoin(need.tags, ","),
                      .need = need.bytes,
                      .have = memory->free_bytes},
                     "not enough device memory to wake");
  }
  return absl::OkStatus();
}

// What came back, for the report; call while the groups are still in their old state.
void Count(const Transition& t, const std::vector<std::size_t>& groups, TransitionReport& report) {
  for (const std::size_t g : groups) {
    const ArenaGroup& group = t.group(g);
    TagTransition& row = RowOf(report, group.spec.tag);
    for (const ArenaChunk& chunk : group.chunks) {
      report.freed_bytes += chunk.range.bytes;
      if (group.dropped()) {
        row.dropped_bytes += chunk.range.bytes;
      } else {
        row.kept_bytes += t.state.backups.at(chunk.range.base).room.size();
      }
    }
  }
}

// One attempt at everything that is still asleep.
class WakeAttempt {
 public:
  WakeAttempt(Transitions& parts, bool publish_each_tag, std::vector<TransitionReport>& reports)
      : parts_(parts), each_(publish_each_tag), reports_(reports) {}

  // On failure what was not published is asleep as before.
  absl::Status Run() {
    absl::Status status = BringBack();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Transition& t = parts_[i];
      if (status.ok()) Commit(i, t.groups);
      // Nothing is on its way any more: it is there, or it goes.
      t.state.progress.Coming({});
      if (!status.ok()) GiveUp(t);
    }
    return status;
  }

 private:
  absl::Status BringBack() {
    std::list<WakePipeline> pipelines;
    for (Transition& t : parts_) {
      HOLDFAST_RETURN_IF_ERROR(HoldLocalMemory(t));
      pipelines.emplace_back(
          t, each_ ? WakePipeline::Order::kTagByTag : WakePipeline::Order::kKeptFirst,
          /*announce=*/true);
      HOLDFAST_RETURN_IF_ERROR(pipelines.back().Plan());
    }
    // In turns, so that several devices work at once.
    for (bool more = true; more;) {
      more = false;
      for (WakePipeline& pipeline : pipelines) {
        if (pipeline.done()) continue;
        HOLDFAST_RETURN_IF_ERROR(pipeline.Step());
        if (each_) HOLDFAST_RETURN_IF_ERROR(PublishWhole(pipeline));
        more = true;
      }
    }
    for (Transition& t : parts_) HOLDFAST_RETURN_IF_ERROR(CompleteGroups(t, t.groups));
    return absl::OkStatus();
  }

  // Publishes the tags that are whole, in the order given: of one arena only.
  absl::Status PublishWhole(const WakePipeline& pipeline) {
    Transition& t = parts_.front();
    while (!t.groups.empty()) {
      const std::string tag = t.group(t.groups.front()).spec.tag;
      if (!pipeline.Whole(tag)) return absl::OkStatus();
      std::vector<std::size_t> whole;
      for (const std::size_t g : t.groups) {
        if (t.group(g).spec.tag == tag) whole.push_back(g);
      }
      HOLDFAST_RETURN_IF_ERROR(CompleteGroups(t, whole));
      Commit(0, whole);
      std::erase_if(t.groups, [&](std::size_t g) { return t.group(g).spec.tag == tag; });
      t.called.clear();  // they keep their hold
    }
    return absl::OkStatus();
  }

  void Commit(std::size_t part, const std::vector<std::size_t>& groups) {
    Count(parts_[part], groups, reports_[part]);
    Publish(parts_[part], groups, /*asleep=*/false);
  }

  static void GiveUp(Transition& t) {
    UndoTakeHold(t);
    RemoveAll(t);
    // Does nothing if a tag of the arena is awake. If it fails the memory stays held, and is given
    // back by the next sleep.
    DropLocalMemory(t).IgnoreError();
  }

  Transitions& parts_;
  const bool each_;
  std::vector<TransitionReport>& reports_;
};

// Sets `begun` once the request itself has been found right.
absl::Status Attempt(const std::vector<ArenaTags>& arenas, const WakeOptions& options,
                     StageClock& clock, std::vector<TransitionReport>& reports, bool& begun) {
  HOLDFAST_ASSIGN_OR_RETURN(JointTransition joint,
                            JointTransition::Begin(arenas, clock, /*asleep=*/true));
  begun = true;
  if (!joint.empty()) {
    // With a deadline the attempt itself is the judge.
    if (options.memory_deadline == Clock::time_point{}) {
      HOLDFAST_RETURN_IF_ERROR(CheckFreeMemory(joint.parts()));
    }
    HOLDFAST_RETURN_IF_ERROR(WakeAttempt(joint.parts(), options.publish_each_tag, reports).Run());
  }
  FinishReports(joint.parts(), reports);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TransitionReport>> WakeTogether(const std::vector<ArenaTags>& arenas,
                                                           const WakeOptions& options) {
  if (options.publish_each_tag && arenas.size() > 1) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "publish_each_tag"},
                     "several arenas wake together or not at all");
  }
  StageClock clock;
  std::vector<TransitionReport> reports(arenas.size());
  Clock::duration wait = kShortestWait;
  for (std::uint64_t attempt = 1;; ++attempt) {
    bool begun = false;
    const absl::Status status = Attempt(arenas, options, clock, reports, begun);
    if (status.ok()) {
      for (TransitionReport& report : reports) report.attempts = attempt;
      return reports;
    }
    const Clock::time_point now = Clock::now();
    if (!IsErrorKind(status, ErrorKind::kOutOfMemory) || now >= options.memory_deadline) {
      if (begun) JointTransition::TellWaiters(arenas, status);
      return status;
    }
    // Without the mutexes: what frees the memory may be a sleep of ours.
    clock.Begin(Stage::kPrepare);
    std::this_thread::sleep_for(std::min(wait, options.memory_deadline - now));
    wait = std::min(2 * wait, kLongestWait);
  }
}

absl::StatusOr<TransitionReport> Residency::Wake(const std::vector<std::string>& tags,
                                                 const WakeOptions& options) {
  HOLDFAST_ASSIGN_OR_RETURN(std::vector<TransitionReport> reports,
                            WakeTogether({{this, tags}}, options));
  return std::move(reports.front());
}

}  // namespace holdfast
