// Pages and contents of one arena's groups come back, each stage of a chunk beside the next
// chunk's:
//
//   calling thread   create, map, access  |  (k - window): wait, compare, lower to read-only
//   copies           copy k               |
//   hashes           tail fill, hash k behind its copy
//   fills            dropped groups, in whole runs
//
// So the copy engine waits for nobody. Steps are taken one at a time, so that the pipelines of
// several arenas run beside one another. Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_WAKE_PIPELINE_H_
#define HOLDFAST_ALLOCATOR_WAKE_PIPELINE_H_

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "allocator/planted_faults.h"
#include "allocator/transition.h"

namespace holdfast {

class WakePipeline {
 public:
  enum class Order {
    kKeptFirst,  // every kept group, then the dropped ones
    kTagByTag,   // each tag as a whole
  };

  // Brings back t.groups: what is missing is made, what is lost restored, all else left alone.
  // `announce` tells t.state.progress of it. On failure pages are as far as they got.
  WakePipeline(Transition& t, Order order, bool announce);

  // Before the first step. kInternal: a chunk's contents are in no backup of this Residency.
  absl::Status Plan();
  bool done() const {
    return next_ == kept_end_ && next_dropped_ == units_.size() && in_flight_.empty();
  }
  // Begins the next chunk, or a dropped group while enough copies are on their way, or ends the
  // oldest chunk. kCorrupted, kMisplaced (span, leaf).
  absl::Status Step();
  // True once every group of the tag is begun and every kept chunk of it back.
  bool Whole(const std::string& tag) const;

 private:
  // One chunk of a kept group, or all of a dropped one.
  struct Unit {
    std::size_t group = 0, chunk = 0;
    bool dropped = false;
    std::ptrdiff_t copy = -1;  // in copies_; -1: the chunk's contents are still there
  };
  struct InFlight {
    std::size_t copy = 0, marks = 0;
  };

  absl::Status PlanCopies();
  absl::Status Begin(const Unit& unit);
  absl::Status BeginChunk(const Unit& unit);
  absl::Status BeginDropped(const Unit& unit);
  absl::Status EnqueueContents(const CopyIn& copy, WakeMarks& marks);
  absl::Status FinishOldest();

  Transition& t_;
  Order order_;
  bool announce_;
  std::vector<Unit> units_;
  std::vector<CopyIn> copies_;
  std::vector<std::size_t> left_;  // units of each group that are not finished
  std::deque<InFlight> in_flight_;
  std::size_t kept_end_ = 0;      // units before it come in turn; behind it, dropped groups that
                                  // are begun while copies are on their way
  std::size_t next_ = 0;          // unit before kept_end_
  std::size_t next_dropped_ = 0;  // unit behind it
  std::size_t begun_ = 0;         // copies
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_WAKE_PIPELINE_H_
