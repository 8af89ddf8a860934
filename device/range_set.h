// A set of addresses kept as disjoint ranges: which ones this process once had and gave back.
#ifndef HOLDFAST_DEVICE_RANGE_SET_H_
#define HOLDFAST_DEVICE_RANGE_SET_H_

#include <cstddef>
#include <map>
#include <mutex>

#include "device/address.h"

namespace holdfast {

// Thread-safe. Ranges that touch or overlap are merged, so its size is bounded by how scattered the
// addresses are, not by how often they were given back.
class RangeSet {
 public:
  void Add(AddressRange range);
  void Remove(AddressRange range);  // what lies outside it stays
  bool Contains(DeviceAddress address) const;
  std::size_t ranges() const;

 private:
  // Cuts at `range`'s two ends, so that every range lies inside it or outside. mutex_ is held.
  void SplitAt(DeviceAddress address);

  mutable std::mutex mutex_;
  std::map<DeviceAddress, DeviceAddress> end_of_;  // first address -> one past the last
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_RANGE_SET_H_
