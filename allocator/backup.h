// The backup of one chunk: a room of exactly the bytes that are kept, and what is known of them.
//
// The invariant: if leaf i is known, leaf i of the room hashes to hashes[i]. Whoever is about to
// write into the room takes the flag down first; it goes up again when the copy is done. So a copy
// that failed half-way leaves flags that are honest, and sleep compares only what it may trust.
//
// Only the part of a chunk below the group's last span is kept, rounded up to a page: eight spans
// of 65 MiB cost 520 MiB. What lies behind it comes back zeroed.
#ifndef HOLDFAST_ALLOCATOR_BACKUP_H_
#define HOLDFAST_ALLOCATOR_BACKUP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "allocator/arena.h"
#include "allocator/backing_pool.h"
#include "device/device.h"

namespace holdfast {

// When contents were read-only to everybody: as long as both counts stay, they cannot have changed.
struct SealStamp {
  std::uint64_t writable_epoch = 0;  // of the group
  std::uint64_t writers = 0;         // holders that may write, ever registered with the arena
  bool operator==(const SealStamp&) const = default;
};

struct Backup {
  PooledBuffer room;
  std::vector<Hash128> hashes;  // one a leaf of the room
  std::vector<bool> known;      // by leaf
  // Set when every leaf equalled the device's while the group was sealed.
  std::optional<SealStamp> clean_at;
  bool complete = false;  // the room holds what the chunk held when its pages went
  bool staged = false;    // a loader writes into the room: it must not go, nor be trusted yet

  // Takes a room for contents that are not there yet.
  void Accept(PooledBuffer fresh);
  void ForgetContents();
  bool AnyKnown() const;
  bool AllKnown() const;
};

// Keyed by the chunk's base address.
using Backups = std::map<DeviceAddress, Backup>;

std::uint64_t LeavesOf(std::uint64_t bytes);

// The part of a chunk whose contents are kept; empty behind the group's last span.
AddressRange KeptPart(const ArenaGroup& group, const ArenaChunk& chunk);

// Null if the chunk has no backup of the size that it needs now.
Backup* FindBackup(Backups& backups, AddressRange kept);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_BACKUP_H_
