#include "allocator/copy_out.h"

#include <algorithm>
#include <utility>

#include "allocator/leaf_hashes.h"
#include "device/error.h"

namespace holdfast {

CopyOut::CopyOut(Transition& t, RoomPlan rooms) : t_(t), rooms_(std::move(rooms)) {
  auto room = rooms_.cbegin();  // in the order of the chunks
  for (const KeptChunk& kept : KeptChunksOf(t.arena(), t.groups)) {
    if (room != rooms_.cend() && room->kept.kept.base == kept.kept.base) {
      without_room_.push_back({kept});
      ++room;
    } else if (IsClean(t, kept)) {
      clean_.push_back(kept);
    } else {
      with_room_.push_back({kept});
    }
  }
}

template <typename Pick>
absl::Status CopyOut::Copy(Moving& moving, Backup& backup, Pick pick) {
  const AddressRange kept = moving.chunk.kept;
  const std::size_t leaves = backup.known.size();
  for (std::size_t leaf = 0; leaf < leaves;) {
    if (!pick(leaf)) {
      ++leaf;
      continue;
    }
    const std::uint64_t begin = leaf * kHashLeafBytes;
    for (; leaf < leaves && pick(leaf); ++leaf) backup.known[leaf] = false;
    const std::uint64_t end = std::min(leaf * kHashLeafBytes, kept.bytes);
    backup.clean_at.reset();
    backup.complete = false;
    backup.staged = false;
    HOLDFAST_RETURN_IF_ERROR(t_.device().CopyToHost(*t_.state.copies, backup.room.data() + begin,
                                                    kept.base + begin, end - begin));
    moving.copied_bytes += end - begin;
  }
  return absl::OkStatus();
}

absl::Status CopyOut::Start() {
  if (hashing()) {
    // On the device and before anything is unmapped: what a later copy in is measured against must
    // not have gone through the copy out.
    t_.clock.Begin(Stage::kHash);
    std::vector<HashPiece> pieces;
    for (const Moving& moving : with_room_) {
      pieces.push_back({moving.chunk.kept, moving.chunk.first_leaf});
    }
    for (const Moving& moving : without_room_) {
      pieces.push_back({moving.chunk.kept, moving.chunk.first_leaf});
    }
    std::sort(pieces.begin(), pieces.end(),
              [](const HashPiece& a, const HashPiece& b) { return a.first_leaf < b.first_leaf; });
    HOLDFAST_RETURN_IF_ERROR(
        LaunchHashes(t_.device(), *t_.state.hashes, pieces, t_.state.leaf_hashes()));
  }
  t_.clock.Begin(Stage::kCopy);
  for (Moving& moving : with_room_) {
    Backup& backup = *t_.backup(moving.chunk);
    const bool all = !comparing();
    HOLDFAST_RETURN_IF_ERROR(
        Copy(moving, backup, [&](std::size_t leaf) { return all || !backup.known[leaf]; }));
  }
  return absl::OkStatus();
}

absl::Status CopyOut::CopyChanged() {
  t_.clock.Begin(Stage::kHash);
  HOLDFAST_RETURN_IF_ERROR(t_.device().Synchronize(*t_.state.hashes));
  hashes_ready_ = true;
  for (Moving& moving : with_room_) {
    Backup& backup = *t_.backup(moving.chunk);
    const Hash128* now = t_.hashes_of(moving.chunk);
    HOLDFAST_RETURN_IF_ERROR(Copy(moving, backup, [&](std::size_t leaf) {
      return backup.known[leaf] && now[leaf] != backup.hashes[leaf];
    }));
  }
  return absl::OkStatus();
}

absl::Status CopyOut::Continue() {
  if (comparing() && !with_room_.empty()) HOLDFAST_RETURN_IF_ERROR(CopyChanged());
  for (std::size_t i = 0; i < without_room_.size(); ++i) {
    Moving& moving = without_room_[i];
    t_.clock.Begin(Stage::kPrepare);
    HOLDFAST_RETURN_IF_ERROR(TakeRoom(t_.state, rooms_[i]));
    t_.clock.Begin(Stage::kCopy);
    HOLDFAST_RETURN_IF_ERROR(
        Copy(moving, *t_.backup(moving.chunk), [](std::size_t) { return true; }));
  }
  return absl::OkStatus();
}

void CopyOut::Settle(const Moving& moving, TransitionReport& report) {
  Backup& backup = *t_.backup(moving.chunk);
  if (hashing()) {
    const Hash128* now = t_.hashes_of(moving.chunk);
    std::copy(now, now + backup.hashes.size(), backup.hashes.begin());
    std::fill(backup.known.begin(), backup.known.end(), true);
  }
  backup.clean_at = moving.chunk.seal;
  backup.complete = true;
  backup.staged = false;
  TagTransition& row = RowOf(report, t_.group(moving.chunk.group).spec.tag);
  row.kept_bytes += moving.copied_bytes;
  row.clean_bytes += moving.chunk.kept.bytes - moving.copied_bytes;
}

absl::Status CopyOut::Finish(TransitionReport& report) {
  t_.clock.Begin(Stage::kCopy);
  HOLDFAST_RETURN_IF_ERROR(t_.device().Synchronize(*t_.state.copies));
  if (hashing() && !hashes_ready_) {
    t_.clock.Begin(Stage::kHash);
    HOLDFAST_RETURN_IF_ERROR(t_.device().Synchronize(*t_.state.hashes));
  }
  for (const Moving& moving : with_room_) Settle(moving, report);
  for (const Moving& moving : without_room_) Settle(moving, report);
  for (const KeptChunk& kept : clean_) {
    t_.backup(kept)->complete = true;
    RowOf(report, t_.group(kept.group).spec.tag).clean_bytes += kept.kept.bytes;
  }
  return absl::OkStatus();
}

}  // namespace holdfast
