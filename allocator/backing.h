// Where kept contents go while their pages are away: pinned host memory, one exact buffer a chunk,
// with the leaf hashes taken when it was written.
#ifndef HOLDFAST_ALLOCATOR_BACKING_H_
#define HOLDFAST_ALLOCATOR_BACKING_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "device/device.h"

namespace holdfast {

struct Backup {
  HostBuffer bytes;
  std::vector<Hash128> hashes;  // one a leaf of kHashLeafBytes; empty if verification is off
  bool valid = false;           // holds the contents of its chunk
};

// Keyed by the chunk's base address. Not thread-safe (but for the byte counts): used by
// transitions, which are serialised.
class Backing {
 public:
  Backing(Device& device, std::uint64_t cap_bytes) : device_(device), cap_bytes_(cap_bytes) {}

  // Makes room for every chunk in `ranges`, reusing what is there. The cap is judged for all of
  // them before anything is allocated; where it is short, rooms of other chunks with no valid
  // contents are given back first. kOutOfHostMemory with need and have.
  absl::Status PrepareAll(const std::vector<AddressRange>& ranges);
  // Makes room for a chunk of `bytes` at `base`, reusing what is there. kOutOfHostMemory with need
  // and have if the cap or the host says no; earlier backups stay.
  absl::Status Prepare(DeviceAddress base, std::uint64_t bytes);
  // The backup of a chunk; null if none was prepared.
  Backup* Find(DeviceAddress base);
  void Drop(DeviceAddress base);
  // Drops every backup whose contents are not valid.
  void Trim();
  std::uint64_t held_bytes() const { return held_bytes_.load(); }
  std::uint64_t cap_bytes() const { return cap_bytes_; }

 private:
  Device& device_;
  std::uint64_t cap_bytes_;
  std::atomic<std::uint64_t> held_bytes_{0};
  std::map<DeviceAddress, Backup> backups_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_BACKING_H_
