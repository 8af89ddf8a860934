#include "allocator/backup.h"

#include <algorithm>
#include <utility>

#include "device/bytes.h"

namespace holdfast {
namespace {

// What contents are rounded up to: a page of the host.
constexpr std::uint64_t kPageBytes = 4 * kKiB;

}  // namespace

void Backup::Accept(PooledBuffer fresh) {
  room = std::move(fresh);
  hashes.assign(LeavesOf(room.size()), Hash128{});
  known.resize(hashes.size());
  staged = false;
  ForgetContents();
}

void Backup::ForgetContents() {
  std::fill(known.begin(), known.end(), false);
  clean_at.reset();
  complete = false;
}

bool Backup::AnyKnown() const { return std::find(known.begin(), known.end(), true) != known.end(); }

bool Backup::AllKnown() const {
  return std::find(known.begin(), known.end(), false) == known.end();
}

std::uint64_t LeavesOf(std::uint64_t bytes) {
  return bytes / kHashLeafBytes + (bytes % kHashLeafBytes != 0 ? 1 : 0);
}

AddressRange KeptPart(const ArenaGroup& group, const ArenaChunk& chunk) {
  const std::uint64_t offset = chunk.range.base - group.extent.base;
  const std::uint64_t end = AlignUp(group.reserved_bytes, kPageBytes);
  if (end <= offset) return {chunk.range.base, 0};
  return {chunk.range.base, std::min(chunk.range.bytes, end - offset)};
}

Backup* FindBackup(Backups& backups, AddressRange kept) {
  const auto found = backups.find(kept.base);
  if (found == backups.end() || found->second.room.size() != kept.bytes) return nullptr;
  return &found->second;
}

}  // namespace holdfast
