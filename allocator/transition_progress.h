// How far a wake has come, for those who wait for a part of it. Waiting never holds up the
// transition, nor the other way round. Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_TRANSITION_PROGRESS_H_
#define HOLDFAST_ALLOCATOR_TRANSITION_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "allocator/arena.h"

namespace holdfast {

// Thread-safe.
class TransitionProgress {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  explicit TransitionProgress(const Arena& arena) : arena_(arena) {}

  // -- The transition's side
  // An attempt begins to bring these pieces back, none of which is there yet. Empty: it gave up.
  void Coming(std::vector<AddressRange> pieces);
  // The contents of piece `index` of Coming are back and verified.
  void Back(std::size_t index);
  // The arena's published state has changed.
  void Published();
  // The transition that was to bring these tags has ended with `error`.
  void Failed(const std::vector<std::string>& tags, const absl::Status& error);

  // -- The waiters' side: as Residency::WaitAwake and WaitSpan, for a tag and a span that exist.
  absl::Status WaitTag(const std::string& tag, Deadline deadline) const;
  absl::Status WaitSpan(const SpanInfo& span, Deadline deadline) const;

 private:
  struct Failure {
    std::uint64_t count = 0;
    absl::Status last;
  };
  // With mutex_ held.
  bool AllBack(AddressRange range) const;
  const Failure* FindFailure(const std::string& tag) const;
  absl::Status Wait(const std::string& tag, const SpanInfo* span, Deadline deadline) const;

  const Arena& arena_;
  mutable std::mutex mutex_;  // taken before the arena's own; never held for long
  mutable std::condition_variable changed_;
  std::vector<AddressRange> pieces_;
  std::vector<bool> back_;
  std::map<std::string, Failure> failures_;  // by tag
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_TRANSITION_PROGRESS_H_
