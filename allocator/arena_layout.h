// Where an arena's window goes and how its groups lie in it. Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_ARENA_LAYOUT_H_
#define HOLDFAST_ALLOCATOR_ARENA_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "device/device.h"

namespace holdfast {

// The built-in candidates: an odd high half, so that no pair of small integers looks like a pointer
// into the arena. Under a sanitizer also the range that its runtime leaves to mmap.
std::vector<DeviceAddress> DefaultCandidateBases();

// Groups with their extents relative to a window at 0: multiples of the granularity, one granule of
// nothing between neighbours, so that running off the end of a group faults. kInvalidArgument: no
// groups, an empty tag or extent, zero chunk size, a (tag, role, refilled, part) twice, or a sum
// beyond 64 bits.
struct GroupLayout {
  std::vector<ArenaGroup> groups;
  std::uint64_t window_bytes = 0;
};
absl::StatusOr<GroupLayout> LayOutGroups(const std::vector<GroupSpec>& specs,
                                         std::uint64_t granularity);

// Reserves the window at the first candidate that the device grants, else where the device likes.
// kAddressTaken naming the size.
struct Window {
  AddressRange range;
  int candidate = -1;  // index of the candidate taken; -1: the device's own choice
};
absl::StatusOr<Window> ReserveWindow(Device& device, const std::string& arena, std::uint64_t bytes,
                                     const std::vector<DeviceAddress>& candidates);

// "tag/role", or "tag/role/part", as messages and reports name a group.
std::string GroupName(const GroupSpec& spec);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_ARENA_LAYOUT_H_
