#include "preload/history.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"

namespace holdfast::preload {
namespace {

// A buffer that grows is replaced by one of the same kind, larger but not of another order.
constexpr std::uint64_t kMostGrowth = 16;

bool Outgrows(const Allocation& small, const Allocation& large) {
  return large.call == small.call && large.range.bytes > small.range.bytes &&
         large.range.bytes / kMostGrowth <= small.range.bytes;
}

}  // namespace

std::string Allocation::Label() const {
  return absl::StrCat("#", id, " ", call, name.empty() ? "" : " '", name, name.empty() ? " " : "' ",
                      FormatBytes(range.bytes));
}

AllocationPtr History::Add(std::uint64_t id, std::string call, AddressRange range, Tick now) {
  const std::uint64_t begin = range.base.value, end = range.end().value;
  auto at = live_.lower_bound(begin);
  if (at != live_.begin() && std::prev(at)->second->range.end().value > begin) --at;
  while (at != live_.end() && at->first < end) {
    const AllocationPtr unseen = at->second;
    at = live_.erase(at);
    Bury(unseen, "a call that was not seen", now);
  }
  auto added = std::make_shared<Allocation>();
  added->id = id;
  added->call = std::move(call);
  added->range = range;
  added->born = now;
  live_.emplace(begin, added);
  // Grown by freeing first and allocating next.
  if (last_gone_ != nullptr && last_gone_->heir == nullptr && Outgrows(*last_gone_, *added)) {
    last_gone_->heir = added;
  }
  last_gone_ = nullptr;
  newest_ = added;
  return added;
}

void History::Bury(const AllocationPtr& allocation, const std::string& call, Tick now) {
  allocation->died = now;
  allocation->freed_by = call;
  // Grown by allocating first and freeing next.
  if (newest_ != nullptr && newest_ != allocation && newest_->died == 0 &&
      newest_->born > allocation->born && Outgrows(*allocation, *newest_)) {
    allocation->heir = newest_;
  }
  last_gone_ = allocation;

  const std::uint64_t begin = allocation->range.base.value, end = allocation->range.end().value;
  auto at = past_.lower_bound(begin);
  if (at != past_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != past_.end() && at->first < end) {
    const std::uint64_t old_begin = at->first;
    const Past old = at->second;
    at = past_.erase(at);
    if (old_begin < begin) past_[old_begin] = {begin, old.allocation};
    if (old.end > end) {
      past_[end] = {old.end, old.allocation};
      break;
    }
  }
  past_[begin] = {end, allocation};
}

AllocationPtr History::End(DeviceAddress base, const std::string& call, Tick now) {
  const auto found = live_.find(base.value);
  if (found == live_.end()) return nullptr;
  const AllocationPtr allocation = found->second;
  live_.erase(found);
  Bury(allocation, call, now);
  return allocation;
}

std::vector<AllocationPtr> History::EndWithin(AddressRange range, const std::string& call,
                                              Tick now) {
  std::vector<AllocationPtr> ended;
  auto at = live_.lower_bound(range.base.value);
  while (at != live_.end() && at->first < range.end().value) {
    ended.push_back(at->second);
    at = live_.erase(at);
    Bury(ended.back(), call, now);
  }
  return ended;
}

void History::Revive(const AllocationPtr& allocation) {
  allocation->died = 0;
  allocation->freed_by.clear();
  allocation->heir = nullptr;
  if (last_gone_ == allocation) last_gone_ = nullptr;
  for (auto at = past_.begin(); at != past_.end();) {
    at = at->second.allocation == allocation ? past_.erase(at) : std::next(at);
  }
  live_.emplace(allocation->range.base.value, allocation);
}

History::Place History::At(DeviceAddress address) const {
  Place place;
  if (const auto after = past_.upper_bound(address.value); after != past_.begin()) {
    const Past& past = std::prev(after)->second;
    if (address.value < past.end) place.freed = past.allocation;
  }
  const auto after = live_.upper_bound(address.value);
  if (after == live_.begin()) return place;
  const AllocationPtr& last = std::prev(after)->second;
  if (last->range.Contains(address)) place.live = last;
  // The end of a buffer, as loops over [begin, end) hold it; unless it is where a freed one began.
  if (last->range.end() == address) {
    place.ending = last;
    if (place.freed == nullptr) place.live = last;
  }
  return place;
}

std::vector<AllocationPtr> History::InUse() const {
  std::vector<AllocationPtr> all;
  for (const auto& [base, allocation] : live_) all.push_back(allocation);
  return all;
}

std::vector<AllocationPtr> History::Gone() const {
  std::vector<AllocationPtr> all;
  for (const auto& [begin, past] : past_) all.push_back(past.allocation);
  return all;
}

void History::Forget() {
  live_.clear();
  past_.clear();
  newest_ = last_gone_ = nullptr;
}

}  // namespace holdfast::preload
