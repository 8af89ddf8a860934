// The read-only seal: what proves that contents are as they were.
#include "absl/strings/str_cat.h"
#include "allocator/arena.h"
#include "allocator/arena_layout.h"
#include "device/error.h"

namespace holdfast {
namespace {

AddressRange PagesOf(const ArenaGroup& group) { return {group.extent.base, group.committed_bytes}; }

absl::Status SetPages(Device& device, const ArenaGroup& group, Access access) {
  const AddressRange pages = PagesOf(group);
  return pages.bytes == 0 ? absl::OkStatus() : device.SetAccess(pages, access);
}

}  // namespace

absl::StatusOr<std::vector<ArenaGroup*>> Arena::ImmutableGroups(const std::string& tag,
                                                                bool sealed) {
  std::vector<ArenaGroup*> selected;
  bool found = false;
  for (ArenaGroup& group : groups_) {
    if (group.spec.tag != tag || group.spec.role != Role::kImmutable) continue;
    found = true;
    if (group.sealed != sealed) continue;
    if (group.asleep) {
      return MakeError({.kind = ErrorKind::kAsleep, .object = GroupName(group.spec)},
                       "the seal of a sleeping group cannot be changed");
    }
    selected.push_back(&group);
  }
  if (found) return selected;
  return MakeError({.kind = ErrorKind::kNotFound, .object = tag}, "no immutable group of this tag");
}

absl::Status Arena::Seal(const std::string& tag) {
  std::lock_guard<std::mutex> transition(transition_mutex_);
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<ArenaGroup*> sealing,
                            ImmutableGroups(tag, /*sealed=*/false));
  for (const ArenaGroup* group : sealing) {
    const std::uint64_t end = LiveEnd(static_cast<std::size_t>(group - groups_.data()));
    if (end <= group->committed_bytes) continue;
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = GroupName(group->spec),
                      .need = end,
                      .have = group->committed_bytes},
                     "sealed before all of its spans are committed");
  }
  for (std::size_t i = 0; i < sealing.size(); ++i) {
    ArenaGroup& group = *sealing[i];
    if (absl::Status lowered = SetPages(device_, group, Access::kRead); !lowered.ok()) {
      // One that cannot be raised again is read-only, and stays marked as what it is.
      for (std::size_t j = 0; j < i; ++j) {
        sealing[j]->sealed = !SetPages(device_, *sealing[j], Access::kReadWrite).ok();
      }
      return Annotate(lowered, "seal of " + GroupName(group.spec));
    }
    group.sealed = true;
  }
  return absl::OkStatus();
}

absl::Status Arena::Unseal(const std::string& tag) {
  std::lock_guard<std::mutex> transition(transition_mutex_);
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<ArenaGroup*> opening,
                            ImmutableGroups(tag, /*sealed=*/true));
  for (std::size_t i = 0; i < opening.size(); ++i) {
    ArenaGroup& group = *opening[i];
    if (absl::Status raised = SetPages(device_, group, Access::kReadWrite); !raised.ok()) {
      // One that cannot be lowered again is writable, and is marked as what it is.
      for (std::size_t j = 0; j < i; ++j) {
        opening[j]->sealed = SetPages(device_, *opening[j], Access::kRead).ok();
      }
      return Annotate(raised, "unseal of " + GroupName(group.spec));
    }
    group.sealed = false;
    ++group.writable_epoch;
  }
  return absl::OkStatus();
}

}  // namespace holdfast
