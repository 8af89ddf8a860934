#include "device/range_set.h"

#include <algorithm>
#include <iterator>

namespace holdfast {

void RangeSet::SplitAt(DeviceAddress address) {
  const auto after = end_of_.upper_bound(address);
  if (after == end_of_.begin()) return;
  const auto range = std::prev(after);
  if (range->first == address || range->second <= address) return;
  end_of_.emplace_hint(after, address, range->second);
  range->second = address;
}

void RangeSet::Remove(AddressRange range) {
  if (range.bytes == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  SplitAt(range.base);
  SplitAt(range.end());
  end_of_.erase(end_of_.lower_bound(range.base), end_of_.lower_bound(range.end()));
}

void RangeSet::Add(AddressRange range) {
  if (range.bytes == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  DeviceAddress first = range.base, end = range.end();
  auto at = end_of_.upper_bound(first);
  if (at != end_of_.begin() && std::prev(at)->second >= first) --at;
  while (at != end_of_.end() && at->first <= end) {
    first = std::min(first, at->first);
    end = std::max(end, at->second);
    at = end_of_.erase(at);
  }
  end_of_.emplace_hint(at, first, end);
}

bool RangeSet::Contains(DeviceAddress address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto after = end_of_.upper_bound(address);
  return after != end_of_.begin() && address < std::prev(after)->second;
}

std::size_t RangeSet::ranges() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return end_of_.size();
}

}  // namespace holdfast
