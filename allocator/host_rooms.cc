#include "allocator/host_rooms.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "allocator/arena_layout.h"
#include "device/error.h"

namespace holdfast {
namespace {

// A chunk whose room has to be made now.
struct Lacking {
  std::size_t part = 0, room = 0;  // places in the plans
  std::uint64_t bytes = 0;
};

using PendingItems = std::map<DeviceAddress, OrderedRoom>;

PendingItems ItemsOf(ResidencyState& state) {
  std::erase_if(state.pending, [](const PendingRooms& pending) {
    return std::all_of(pending.rooms.begin(), pending.rooms.end(),
                       [](const AddressRange& room) { return room.bytes == 0; });
  });
  PendingItems items;
  for (PendingRooms& pending : state.pending) {
    for (std::size_t i = 0; i < pending.rooms.size(); ++i) {
      if (pending.rooms[i].bytes == 0) continue;
      OrderedRoom& item = items[pending.rooms[i].base];
      item.order = pending.order.get();
      item.item = i;
      item.pending = &pending.rooms[i];
    }
  }
  return items;
}

// What a part lacks: from what is pending where that fits, else with no order yet.
absl::StatusOr<RoomPlan> PlanRooms(ResidencyState& state, const std::vector<KeptChunk>& chunks) {
  const PendingItems pending = ItemsOf(state);
  RoomPlan plan;
  for (const KeptChunk& kept : chunks) {
    if (FindBackup(state.backups, kept.kept) != nullptr) continue;
    const auto unfit = state.backups.find(kept.kept.base);
    if (unfit != state.backups.end()) {
      if (unfit->second.staged) {
        return MakeError({.kind = ErrorKind::kInvalidArgument,
                          .object = GroupName(state.arena.groups()[kept.group].spec)},
                         "spans were added after its contents were staged");
      }
      state.backups.erase(unfit);  // of another size: idle in the pool from here
    }
    const auto item = pending.find(kept.kept.base);
    const bool fits = item != pending.end() && item->second.pending->bytes == kept.kept.bytes;
    plan.push_back(fits ? item->second : OrderedRoom{});
    plan.back().kept = kept;
  }
  return plan;
}

// Where the backups lie that a wake needs: of groups asleep, or about to be.
std::set<DeviceAddress> NeededBases(const ResidencyState& state,
                                    const std::vector<std::size_t>& moving) {
  std::set<DeviceAddress> bases;
  for (std::size_t g = 0; g < state.arena.groups().size(); ++g) {
    const ArenaGroup& group = state.arena.groups()[g];
    const bool moves = std::find(moving.begin(), moving.end(), g) != moving.end();
    if (!group.asleep && !moves) continue;
    for (const ArenaChunk& chunk : group.chunks) bases.insert(chunk.range.base);
  }
  return bases;
}

// Backups that only save a copy: of groups that are awake and do not move, or of chunks long gone.
void ForEachSpare(ResidencyState& state, const std::vector<std::size_t>& moving,
                  const std::function<bool(const Backup&)>& drop) {
  const std::set<DeviceAddress> needed = NeededBases(state, moving);
  std::erase_if(state.backups, [&](const auto& entry) {
    return !entry.second.staged && !needed.contains(entry.first) && drop(entry.second);
  });
}

// Gives up the spare backups of the pool's arenas if that makes up for what `refusal` lacks.
bool MakeWay(Transitions& parts, const BackingPool* pool, const absl::Status& refusal) {
  const std::optional<ErrorInfo> info = GetErrorInfo(refusal);
  if (!info || info->kind != ErrorKind::kOutOfHostMemory) return false;
  std::uint64_t spare = 0;
  const auto sweep = [&](bool drop) {
    for (Transition& t : parts) {
      if (t.state.pool.get() != pool) continue;
      ForEachSpare(t.state, t.groups, [&](const Backup& backup) {
        spare += backup.room.size();
        return drop;
      });
    }
  };
  sweep(/*drop=*/false);
  if (spare == 0 || info->need > info->have + spare) return false;
  sweep(/*drop=*/true);
  return true;
}

}  // namespace

absl::StatusOr<std::vector<RoomPlan>> OrderRooms(
    Transitions& parts, std::vector<std::unique_ptr<BackingOrder>>& orders) {
  std::vector<RoomPlan> plans;
  std::map<BackingPool*, std::vector<Lacking>> by_pool;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Transition& t = parts[p];
    HOLDFAST_ASSIGN_OR_RETURN(RoomPlan plan, PlanRooms(t.state, KeptChunksOf(t.arena(), t.groups)));
    for (std::size_t r = 0; r < plan.size(); ++r) {
      if (plan[r].order != nullptr) continue;
      by_pool[t.state.pool.get()].push_back({p, r, plan[r].kept.kept.bytes});
    }
    plans.push_back(std::move(plan));
  }
  for (const auto& [pool, lacking] : by_pool) {
    std::vector<std::uint64_t> sizes;
    for (const Lacking& room : lacking) sizes.push_back(room.bytes);
    absl::StatusOr<std::unique_ptr<BackingOrder>> order = pool->Order(sizes);
    if (!order.ok() && MakeWay(parts, pool, order.status())) order = pool->Order(sizes);
    if (!order.ok()) return Annotate(order.status(), "room for backups");
    for (std::size_t i = 0; i < lacking.size(); ++i) {
      OrderedRoom& room = plans[lacking[i].part][lacking[i].room];
      room.order = order->get();
      room.item = i;
    }
    orders.push_back(*std::move(order));
  }
  return plans;
}

absl::Status TakeRoom(ResidencyState& state, const OrderedRoom& room) {
  absl::StatusOr<PooledBuffer> made = room.order->Take(room.item);
  if (!made.ok()) {
    if (room.pending != nullptr) state.pending.clear();
    return Annotate(made.status(), "room for backups");
  }
  if (room.pending != nullptr) room.pending->bytes = 0;
  state.backups[room.kept.kept.base].Accept(*std::move(made));
  return absl::OkStatus();
}

absl::Status OrderAhead(ResidencyState& state, const std::vector<std::string>& tags) {
  const std::vector<std::size_t> awake = SelectGroups(state.arena, tags, /*asleep=*/false);
  HOLDFAST_ASSIGN_OR_RETURN(const RoomPlan plan,
                            PlanRooms(state, KeptChunksOf(state.arena, awake)));
  PendingRooms pending;
  std::vector<std::uint64_t> sizes;
  for (const OrderedRoom& room : plan) {
    if (room.order != nullptr) continue;
    pending.rooms.push_back(room.kept.kept);
    sizes.push_back(room.kept.kept.bytes);
  }
  if (sizes.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<BackingOrder>> order = state.pool->Order(std::move(sizes));
  if (!order.ok()) return Annotate(order.status(), "room for backups");
  pending.order = *std::move(order);
  state.pending.push_back(std::move(pending));
  return absl::OkStatus();
}

absl::Status CollectPending(ResidencyState& state) {
  absl::Status first;
  std::map<DeviceAddress, std::uint64_t> wanted;
  for (std::size_t g = 0; g < state.arena.groups().size(); ++g) {
    if (state.arena.groups()[g].asleep) continue;  // its backups hold the only contents
    for (const KeptChunk& kept : KeptChunksOf(state.arena, {g})) {
      if (FindBackup(state.backups, kept.kept) == nullptr) {
        wanted[kept.kept.base] = kept.kept.bytes;
      }
    }
  }
  for (PendingRooms& pending : state.pending) {
    for (std::size_t i = 0; i < pending.rooms.size(); ++i) {
      const AddressRange& room = pending.rooms[i];
      if (room.bytes == 0) continue;
      absl::StatusOr<PooledBuffer> made = pending.order->Take(i);
      first.Update(made.status());
      const auto place = wanted.find(room.base);
      if (!made.ok() || place == wanted.end() || place->second != room.bytes) continue;
      state.backups[room.base].Accept(*std::move(made));
      wanted.erase(place);
    }
  }
  state.pending.clear();
  return Annotate(first, "room for backups");
}

absl::Status MakeRooms(ResidencyState& state, const std::vector<KeptChunk>& chunks) {
  HOLDFAST_ASSIGN_OR_RETURN(RoomPlan plan, PlanRooms(state, chunks));
  std::vector<std::uint64_t> sizes;
  for (const OrderedRoom& room : plan) {
    if (room.order == nullptr) sizes.push_back(room.kept.kept.bytes);
  }
  std::unique_ptr<BackingOrder> order;
  if (!sizes.empty()) {
    absl::StatusOr<std::unique_ptr<BackingOrder>> made = state.pool->Order(std::move(sizes));
    if (!made.ok()) return Annotate(made.status(), "room for backups");
    order = *std::move(made);
  }
  std::size_t item = 0;
  for (OrderedRoom& room : plan) {
    if (room.order == nullptr) {
      room.order = order.get();
      room.item = item++;
    }
    HOLDFAST_RETURN_IF_ERROR(TakeRoom(state, room));
  }
  return absl::OkStatus();
}

void DropRooms(ResidencyState& state, bool forget_clean) {
  state.pending.clear();
  ForEachSpare(state, {}, [&](const Backup& backup) {
    return forget_clean || (!backup.clean_at && !backup.AnyKnown());
  });
}

}  // namespace holdfast
