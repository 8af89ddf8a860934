// What a program did with its memory: which ranges were given out, under which call, and when they
// went. Plain book-keeping, without a driver.
#ifndef HOLDFAST_PRELOAD_HISTORY_H_
#define HOLDFAST_PRELOAD_HISTORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/address.h"

namespace holdfast::preload {

// Counts what happened in the process, from 1; 0 is "never".
using Tick = std::uint64_t;

struct Allocation {
  std::uint64_t id = 0;  // "#12", in the order of allocation
  std::string call;      // "cuMemAlloc"
  std::string name;      // what the program called it; "" if it did not
  AddressRange range;
  Tick born = 0;
  Tick died = 0;                   // 0: in use
  std::string freed_by;            // the call
  std::uint64_t pool = 0;          // the driver's memory pool, if any
  bool pool_gone = false;          // that pool was destroyed
  std::uint64_t capture = 0;       // number of the capture that was open when it was made; 0: none
  std::uint64_t capture_dead = 0;  // likewise when it went
  std::shared_ptr<Allocation> heir;  // took its place by growth: see History::End

  // "#12 cuMemAlloc 4.0 MiB", with the name if there is one
  std::string Label() const;
};
using AllocationPtr = std::shared_ptr<Allocation>;

// Of each address the last allocation that holds it and the last one that held it before. Bounded
// by how fragmented the address space is, not by how long the program runs. Not thread-safe.
class History {
 public:
  struct Place {
    AllocationPtr live;    // holds the address, or ends there and nobody freed begins there
    AllocationPtr ending;  // in use, ends there; where `live` is null it may be what was meant
    AllocationPtr freed;   // the last that held the address and is gone; may be beneath `live`
  };

  // Takes it in as `id`, born at `now`. Whatever was recorded as in use there went unseen.
  AllocationPtr Add(std::uint64_t id, std::string call, AddressRange range, Tick now);
  // What begins at `base` went; null if nothing of the record does.
  AllocationPtr End(DeviceAddress base, const std::string& call, Tick now);
  // All that begins inside the range.
  std::vector<AllocationPtr> EndWithin(AddressRange range, const std::string& call, Tick now);
  // It did not go after all: the call failed.
  void Revive(const AllocationPtr& allocation);
  Place At(DeviceAddress address) const;
  std::vector<AllocationPtr> InUse() const;
  // The same for those who are gone, a pointer an address range: may repeat.
  std::vector<AllocationPtr> Gone() const;
  void Forget();

 private:
  struct Past {
    std::uint64_t end = 0;
    AllocationPtr allocation;
  };
  void Bury(const AllocationPtr& allocation, const std::string& call, Tick now);

  std::map<std::uint64_t, AllocationPtr> live_;  // by base; disjoint
  std::map<std::uint64_t, Past> past_;           // by begin; disjoint
  AllocationPtr newest_;                         // the last one added
  AllocationPtr last_gone_;                      // went after `newest_` was added
};

}  // namespace holdfast::preload

#endif  // HOLDFAST_PRELOAD_HISTORY_H_
