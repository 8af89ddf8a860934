// What sleep and wake share: the groups one transition moves, and the steps it is made of. Private
// to allocator/. All functions want Arena::transition_mutex() held.
#ifndef HOLDFAST_ALLOCATOR_TRANSITION_H_
#define HOLDFAST_ALLOCATOR_TRANSITION_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/backing.h"
#include "allocator/residency.h"

namespace holdfast {

// Seconds by stage; a stage lasts until the next begins.
class StageClock {
 public:
  void Begin(const std::string& stage);
  void End();
  const std::map<std::string, double>& seconds() const { return seconds_; }

 private:
  std::string stage_;
  std::chrono::steady_clock::time_point begun_;
  std::map<std::string, double> seconds_;
};

struct Transition {
  Arena& arena;
  Stream& stream;
  Backing& backing;
  HostBuffer& hashes;  // pinned room for leaf hashes on their way from the device; grows
  bool verify = true;
  ResidencyFaults faults;
  std::vector<std::size_t> groups;  // indices into arena.groups()
  StageClock clock;

  Device& device() { return arena.device(); }
  ArenaGroup& group(std::size_t index) { return arena.groups()[index]; }
};

// -- transition.cc: choosing and counting --------------------------------------------------------
// kInvalidArgument for an empty list or a tag twice, kNotFound for an unknown one.
absl::Status CheckTags(const Arena& arena, const std::vector<std::string>& tags);
// The groups of the tags that are asleep (or awake).
std::vector<std::size_t> SelectGroups(Arena& arena, const std::vector<std::string>& tags,
                                      bool asleep);
std::uint64_t LeavesOf(std::uint64_t bytes);
// Pinned room for `leaves` hashes.
absl::Status ReserveHashRoom(Device& device, HostBuffer& room, std::uint64_t leaves);
// Hashes of each range, by leaf, computed on the device.
absl::StatusOr<std::vector<std::vector<Hash128>>> HashRanges(
    Device& device, Stream& stream, HostBuffer& room, const std::vector<AddressRange>& ranges);
bool AnyLost(const ArenaGroup& group);

// -- copy_out.cc: contents to their backups ------------------------------------------------------
// Holds the contents already: a sealed group whose backup nobody could make stale.
bool IsClean(const ArenaGroup& group, const Backup* backup);
// Pinned room for every kept chunk, and for all hashes. Nothing has moved when it fails.
absl::Status PrepareBackups(Transition& t);
// Hashes and copies every kept chunk that is not clean. On failure no backup of these is valid.
absl::Status CopyOut(Transition& t);
// The contents may change from here: backups of groups that are not sealed are worth nothing.
void ForgetMutableBackups(Transition& t);

// -- bring_back.cc: pages ------------------------------------------------------------------------
// Unmaps everything, then releases it: kept groups first, so that a failure before the first
// dropped chunk has gone loses nothing. Stops at the first error.
absl::Status TakeAway(Transition& t);
// Creates and maps what is missing, restores what is lost, and sets every group's final access. On
// failure pages are as far as they got; the caller decides.
absl::Status BringBack(Transition& t);
// Waits for our own work and removes every page, as far as that goes; the rest stays recorded.
void RemoveAll(Transition& t);

// -- restore_kept.cc, restore_dropped.cc: contents of lost chunks --------------------------------
// Copies kept contents back and compares hashes. kCorrupted, or kMisplaced where the contents are
// those of another leaf, naming span, leaf and group.
absl::Status RestoreKept(Transition& t);
// Fills dropped contents as declared and calls the refill hooks.
absl::Status RestoreDropped(Transition& t);
// After everything else succeeded: which spans are undefined now. Clears `lost`.
void SettleContents(Transition& t);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_TRANSITION_H_
