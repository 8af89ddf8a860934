#include "allocator/workspace_report.h"

#include "allocator/workspace.h"

namespace holdfast {

std::uint64_t WorkspaceReport::budget_bytes() const {
  std::uint64_t bytes = 0;
  for (const SlotUse& slot : slots) bytes += slot.bytes;
  for (const PersistentUse& kept : persistent) bytes += kept.bytes;
  return bytes;
}

WorkspaceReport WorkspaceManager::Report() const {
  std::lock_guard<std::mutex> lock(mutex_);
  WorkspaceReport report{.locked = LockedNow()};
  for (const Slot& slot : slots_) {
    report.slots.push_back({.slot = slot.id,
                            .span = slot.span,
                            .name = SlotName(slot.id) + ".workspace",
                            .extent_bytes = options_.extent_bytes,
                            .bytes = bytes_,
                            .committed_bytes = arena_.committed_bytes(slot.span),
                            .high_water_bytes = slot.high_water_bytes,
                            .largest_user = slot.largest_user});
  }
  for (const auto& [user, use] : declared_) report.declared.push_back(use);
  for (const auto& [key, use] : measured_) report.measured.push_back(use);
  for (const auto& [key, kept] : persistent_) {
    report.persistent.push_back({.user = kept.spec.user,
                                 .key = kept.spec.key,
                                 .slot = key.first,
                                 .type = kept.spec.type,
                                 .shape = kept.spec.shape,
                                 .span = kept.span,
                                 .bytes = kept.bytes});
  }
  return report;
}

std::uint64_t WorkspaceManager::slot_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return bytes_;
}

std::vector<WorkspaceSlot> WorkspaceManager::slots() const {
  std::vector<WorkspaceSlot> ids;
  for (const Slot& slot : slots_) ids.push_back(slot.id);
  return ids;
}

}  // namespace holdfast
