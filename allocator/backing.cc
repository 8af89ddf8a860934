#include "allocator/backing.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

absl::Status OverCap(std::uint64_t need, std::uint64_t held, std::uint64_t cap) {
  return MakeError({.kind = ErrorKind::kOutOfHostMemory,
                    .object = "backing",
                    .need = need,
                    .have = cap > held ? cap - held : 0},
                   absl::StrCat("host cap of ", FormatBytes(cap)));
}

}  // namespace

absl::Status Backing::PrepareAll(const std::vector<AddressRange>& ranges) {
  std::set<DeviceAddress> wanted;
  std::uint64_t need = 0;
  for (const AddressRange& range : ranges) {
    wanted.insert(range.base);
    const Backup* there = Find(range.base);
    if (there == nullptr || there->bytes.size() != range.bytes) need += range.bytes;
  }
  const auto fits = [&] { return need <= cap_bytes_ && held_bytes() <= cap_bytes_ - need; };
  if (!fits()) {
    for (auto it = backups_.begin(); it != backups_.end();) {
      const auto next = std::next(it);
      if (!it->second.valid && !wanted.contains(it->first)) Drop(it->first);
      it = next;
    }
  }
  if (!fits()) return OverCap(need, held_bytes(), cap_bytes_);
  for (const AddressRange& range : ranges) {
    HOLDFAST_RETURN_IF_ERROR(Prepare(range.base, range.bytes));
  }
  return absl::OkStatus();
}

absl::Status Backing::Prepare(DeviceAddress base, std::uint64_t bytes) {
  const Backup* there = Find(base);
  if (there != nullptr && there->bytes.size() == bytes) return absl::OkStatus();
  if (bytes > cap_bytes_ || held_bytes() > cap_bytes_ - bytes) {
    return OverCap(bytes, held_bytes(), cap_bytes_);
  }
  absl::StatusOr<HostBuffer> buffer = device_.AllocateHost(bytes);
  if (!buffer.ok()) return Annotate(buffer.status(), "backing");
  Drop(base);
  backups_[base].bytes = *std::move(buffer);
  held_bytes_.fetch_add(bytes);
  return absl::OkStatus();
}

Backup* Backing::Find(DeviceAddress base) {
  const auto found = backups_.find(base);
  return found == backups_.end() ? nullptr : &found->second;
}

void Backing::Drop(DeviceAddress base) {
  const auto found = backups_.find(base);
  if (found == backups_.end()) return;
  held_bytes_.fetch_sub(found->second.bytes.size());
  backups_.erase(found);
}

void Backing::Trim() {
  for (auto it = backups_.begin(); it != backups_.end();) {
    const auto next = std::next(it);
    if (!it->second.valid) Drop(it->first);
    it = next;
  }
}

}  // namespace holdfast
