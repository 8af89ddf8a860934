// The planner: a few orders of placing, each greedy with best fit, and the lowest result wins.
#include "allocator/scratch_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

// A request as the planner sees it: size rounded up, so that every offset stays aligned.
struct Item {
  std::uint64_t bytes = 0;
  std::uint64_t first = 0, last = 0;
  std::size_t index = 0;  // of the request
};

struct Placed {
  std::uint64_t offset = 0, end = 0;
  std::uint64_t first = 0, last = 0;
};

struct Layout {
  std::vector<std::uint64_t> offsets;
  std::uint64_t height = 0;
};

// From here on two orders are enough: an attempt costs the square of the number of requests.
constexpr std::size_t kManyRequests = 5000;

enum class Fit { kSmallestGap, kLowestGap };

// The offset for `item` among those already placed, which are sorted by offset. Only what is alive
// at the same time bounds a gap.
std::uint64_t FindOffset(const std::vector<Placed>& placed, const Item& item, Fit fit) {
  std::uint64_t best = 0;
  std::uint64_t best_gap = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t top = 0;  // everything alive below here has been passed
  for (const Placed& p : placed) {
    if (p.first > item.last || item.first > p.last) continue;
    if (p.offset > top) {
      const std::uint64_t gap = p.offset - top;
      if (gap >= item.bytes && gap < best_gap) {
        best = top;
        best_gap = gap;
        if (fit == Fit::kLowestGap || gap == item.bytes) return best;
      }
    }
    top = std::max(top, p.end);
  }
  return best_gap == std::numeric_limits<std::uint64_t>::max() ? top : best;
}

Layout PlaceInOrder(const std::vector<Item>& order, std::size_t requests, Fit fit) {
  Layout layout;
  layout.offsets.assign(requests, 0);
  std::vector<Placed> placed;
  placed.reserve(order.size());
  for (const Item& item : order) {
    const std::uint64_t offset = FindOffset(placed, item, fit);
    const Placed entry{offset, offset + item.bytes, item.first, item.last};
    const auto behind =
        std::upper_bound(placed.begin(), placed.end(), entry,
                         [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
    placed.insert(behind, entry);
    layout.offsets[item.index] = offset;
    layout.height = std::max(layout.height, entry.end);
  }
  return layout;
}

// The most bytes alive at once: a sweep over beginnings and ends.
std::uint64_t MostAlive(const std::vector<Item>& items) {
  struct Event {
    std::uint64_t time;
    bool ends;  // a lifetime includes its last operation, so beginnings of a time come before its
                // ends
    std::uint64_t bytes;
  };
  std::vector<Event> events;
  events.reserve(items.size() * 2);
  for (const Item& item : items) {
    events.push_back({item.first, false, item.bytes});
    events.push_back({item.last, true, item.bytes});
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

absl::StatusOr<std::vector<Item>> Check(const std::vector<ScratchRequest>& requests,
                                        std::uint64_t& sum) {
  std::vector<Item> items;
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
    // The sum fits, so no offset below can wrap.
    HOLDFAST_ASSIGN_OR_RETURN(sum, CheckedAdd(sum, bytes, "scratch " + request.name));
    if (bytes > 0) items.push_back({bytes, request.first, request.last, i});
  }
  return items;
}

}  // namespace

absl::StatusOr<ScratchPlan> PlanScratch(std::vector<ScratchRequest> requests) {
  ScratchPlan plan;
  HOLDFAST_ASSIGN_OR_RETURN(std::vector<Item> items, Check(requests, plan.sum));
  plan.lower_bound = MostAlive(items);

  // Ties go by index, so that a plan is a function of its requests.
  const auto by_size = [](const Item& a, const Item& b) {
    return std::tuple(~a.bytes, ~(a.last - a.first), a.index) <
           std::tuple(~b.bytes, ~(b.last - b.first), b.index);
  };
  const auto by_duration = [](const Item& a, const Item& b) {
    return std::tuple(~(a.last - a.first), ~a.bytes, a.index) <
           std::tuple(~(b.last - b.first), ~b.bytes, b.index);
  };
  const auto by_request = [](const Item& a, const Item& b) {
    return std::tie(a.first, a.index) < std::tie(b.first, b.index);
  };

  Layout best;
  best.height = std::numeric_limits<std::uint64_t>::max();
  const auto attempt = [&](const auto& order, Fit fit) {
    if (best.height == plan.lower_bound) return;  // nothing can be lower
    std::sort(items.begin(), items.end(), order);
    Layout layout = PlaceInOrder(items, requests.size(), fit);
    if (layout.height < best.height) best = std::move(layout);
  };
  attempt(by_size, Fit::kSmallestGap);
  attempt(by_duration, Fit::kSmallestGap);
  if (items.size() < kManyRequests) {
    attempt(by_request, Fit::kSmallestGap);
    attempt(by_size, Fit::kLowestGap);
  }

  plan.offsets = std::move(best.offsets);
  plan.height = best.height;
  plan.requests = std::move(requests);
  return plan;
}

}  // namespace holdfast
