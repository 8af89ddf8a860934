#include "allocator/scratch_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "allocator/scratch_packing.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

// The most bytes alive at one operation: a sweep over beginnings and ends.
std::uint64_t MostAlive(const std::vector<ScratchRequest>& requests,
                        const std::vector<PackItem>& items) {
  struct Event {
    std::uint64_t time;
    bool ends;  // a lifetime includes its last operation, so beginnings of a time come before its
                // ends
    std::uint64_t bytes;
  };
  std::vector<Event> events;
  events.reserve(items.size() * 2);
  for (const PackItem& item : items) {
    events.push_back({requests[item.index].first, false, item.bytes});
    events.push_back({requests[item.index].last, true, item.bytes});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.time, a.ends) < std::tie(b.time, b.ends);
  });
  std::uint64_t alive = 0, most = 0;
  for (const Event& event : events) {
    alive = event.ends ? alive - event.bytes : alive + event.bytes;
    most = std::max(most, alive);
  }
  return most;
}

// Of buffers that all conflict with each other, `seed` among them: the larger ones first.
std::uint64_t Together(const std::vector<ScratchRequest>& requests,
                       const std::vector<PackItem>& largest_first, const PackItem& seed) {
  std::vector<const ScratchRequest*> together = {&requests[seed.index]};
  std::uint64_t bytes = seed.bytes;
  for (const PackItem& item : largest_first) {
    if (item.index == seed.index) continue;
    const ScratchRequest& request = requests[item.index];
    const bool with_all =
        std::all_of(together.begin(), together.end(),
                    [&](const ScratchRequest* other) { return other->Conflicts(request); });
    if (!with_all) continue;
    together.push_back(&request);
    bytes += item.bytes;
  }
  return bytes;
}

// No plan can be lower than the bytes of buffers that all conflict with each other. On one stream
// those alive at one operation are the most there can be; where a step forks, those of parallel
// branches conflict too, and the best of some such sets is taken.
std::uint64_t LowerBound(const std::vector<ScratchRequest>& requests, std::vector<PackItem> items) {
  constexpr std::size_t kSeeds = 64;
  std::uint64_t bound = MostAlive(requests, items);
  const bool branched = std::any_of(items.begin(), items.end(), [&](const PackItem& item) {
    return !requests[item.index].latest.empty();
  });
  if (!branched) return bound;
  std::stable_sort(items.begin(), items.end(),
                   [](const PackItem& a, const PackItem& b) { return a.bytes > b.bytes; });
  for (std::size_t i = 0; i < std::min(kSeeds, items.size()); ++i) {
    bound = std::max(bound, Together(requests, items, items[i]));
  }
  return bound;
}

absl::StatusOr<std::vector<PackItem>> Check(const std::vector<ScratchRequest>& requests,
                                            std::uint64_t& sum) {
  std::vector<PackItem> items;
  items.reserve(requests.size());
  sum = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const ScratchRequest& request = requests[i];
    if (request.first > request.last) {
      return MakeError({.kind = ErrorKind::kInvalidArgument, .object = request.name},
                       "scratch lifetime ends before it begins");
    }
    HOLDFAST_RETURN_IF_ERROR(
        CheckedAdd(request.bytes, kScratchAlignment, "scratch " + request.name).status());
    const std::uint64_t bytes = AlignUp(request.bytes, kScratchAlignment);
    // The sum fits, so no offset of a plan can wrap.
    HOLDFAST_ASSIGN_OR_RETURN(sum, CheckedAdd(sum, bytes, "scratch " + request.name));
    if (bytes > 0) items.push_back({bytes, i});
  }
  return items;
}

}  // namespace

absl::StatusOr<ScratchPlan> PlanScratch(std::vector<ScratchRequest> requests) {
  ScratchPlan plan;
  HOLDFAST_ASSIGN_OR_RETURN(std::vector<PackItem> items, Check(requests, plan.sum));
  plan.offsets.assign(requests.size(), 0);
  if (!items.empty()) {
    plan.lower_bound = LowerBound(requests, items);
    Packing packing = PackScratch(requests, std::move(items), plan.lower_bound);
    plan.offsets = std::move(packing.offsets);
    plan.height = packing.height;
  }
  plan.requests = std::move(requests);
  return plan;
}

}  // namespace holdfast
