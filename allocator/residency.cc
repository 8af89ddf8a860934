// What a residency offers beside sleep and wake (sleep.cc, wake.cc) and staging (staging.cc).
#include "allocator/residency.h"

#include <mutex>
#include <utility>

#include "allocator/arena_layout.h"
#include "allocator/group_pages.h"
#include "allocator/host_rooms.h"
#include "allocator/leaf_hashes.h"
#include "allocator/residency_state.h"
#include "allocator/transition.h"
#include "device/error.h"

namespace holdfast {

Residency::Residency(std::unique_ptr<ResidencyState> state) : state_(std::move(state)) {}
Residency::~Residency() = default;

absl::StatusOr<std::unique_ptr<Residency>> Residency::Create(Arena& arena,
                                                             ResidencyOptions options) {
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<ResidencyState> state,
                            ResidencyState::Create(arena, std::move(options)));
  return std::unique_ptr<Residency>(new Residency(std::move(state)));
}

bool Residency::asleep(const std::string& tag) const { return state_->arena.asleep(tag); }

std::uint64_t Residency::backing_bytes() const { return state_->pool->held_bytes(); }

absl::Status Residency::WaitAwake(const std::string& tag, Deadline deadline) const {
  HOLDFAST_RETURN_IF_ERROR(CheckTags(state_->arena, {tag}));
  return state_->progress.WaitTag(tag, deadline);
}

absl::Status Residency::WaitSpan(SpanId span, Deadline deadline) const {
  const SpanInfo info = state_->arena.span(span);
  if (info.range.bytes == 0) {
    return MakeError({.kind = ErrorKind::kNotFound, .object = state_->arena.name()},
                     "no such span");
  }
  return state_->progress.WaitSpan(info, deadline);
}

absl::Status Residency::PrepareInBackground(const std::vector<std::string>& tags) {
  std::lock_guard<std::mutex> transition(state_->arena.transition_mutex());
  HOLDFAST_RETURN_IF_ERROR(CheckTags(state_->arena, tags));
  return OrderAhead(*state_, tags);
}

absl::Status Residency::Prepare(const std::vector<std::string>& tags) {
  HOLDFAST_RETURN_IF_ERROR(PrepareInBackground(tags));
  std::vector<std::shared_ptr<BackingOrder>> orders;
  {
    std::lock_guard<std::mutex> transition(state_->arena.transition_mutex());
    for (const PendingRooms& pending : state_->pending) orders.push_back(pending.order);
  }
  // Without the mutex: transitions go on, and may take rooms from under us.
  for (const std::shared_ptr<BackingOrder>& order : orders) order->Wait().IgnoreError();
  std::lock_guard<std::mutex> transition(state_->arena.transition_mutex());
  return CollectPending(*state_);
}

std::uint64_t Residency::TrimHost(bool forget_clean) {
  std::lock_guard<std::mutex> transition(state_->arena.transition_mutex());
  DropRooms(*state_, forget_clean);
  return state_->pool->Trim();
}

absl::StatusOr<std::map<std::string, std::vector<Hash128>>> Residency::HashKept() {
  std::lock_guard<std::mutex> transition(state_->arena.transition_mutex());
  std::vector<std::size_t> groups;
  for (std::size_t g = 0; g < state_->arena.groups().size(); ++g) {
    if (!state_->arena.groups()[g].asleep) groups.push_back(g);
  }
  const std::vector<KeptChunk> chunks = KeptChunksOf(state_->arena, groups);
  std::vector<HashPiece> pieces;
  for (const KeptChunk& kept : chunks) pieces.push_back({kept.kept, kept.first_leaf});
  absl::Status status =
      LaunchHashes(state_->device(), *state_->hashes, pieces, state_->leaf_hashes());
  if (status.ok()) status = state_->device().Synchronize(*state_->hashes);
  if (!status.ok()) {
    Settle(state_->device(), *state_->hashes);
    return status;
  }
  std::map<std::string, std::vector<Hash128>> hashes;
  for (const KeptChunk& kept : chunks) {
    std::vector<Hash128>& row = hashes[GroupName(state_->arena.groups()[kept.group].spec)];
    const Hash128* first = state_->leaf_hashes() + kept.first_leaf;
    row.insert(row.end(), first, first + LeavesOf(kept.kept.bytes));
  }
  return hashes;
}

void Residency::PlantFaults(const ResidencyFaults& faults) {
  std::lock_guard<std::mutex> transition(state_->arena.transition_mutex());
  state_->faults = faults;
}

}  // namespace holdfast
