// Leases on the slots: outside of steps from a slot's base, inside a step in its planned scratch.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/workspace.h"
#include "allocator/workspace_poison.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<WorkspaceLease> WorkspaceManager::Acquire(
    WorkspaceSlot slot, Stream& stream, const std::string& user,
    const std::vector<WorkspaceRequest>& requests, const Where& where) {
  HOLDFAST_ASSIGN_OR_RETURN(const PackedRequests packed, PackRequests(requests));
  HOLDFAST_ASSIGN_OR_RETURN(Slot* const found, Find(slot));
  std::lock_guard<std::mutex> lock(mutex_);
  return Count(*found, user, packed, TakeSlot(*found, stream, user, packed, where));
}

absl::StatusOr<WorkspaceLease> WorkspaceManager::AcquireIn(
    StepContext& step, WorkspaceSlot slot, const std::string& user,
    const std::vector<WorkspaceRequest>& requests, const Where& where) {
  HOLDFAST_ASSIGN_OR_RETURN(const PackedRequests packed, PackRequests(requests));
  HOLDFAST_ASSIGN_OR_RETURN(Slot* const found, Find(slot));
  std::lock_guard<std::mutex> lock(mutex_);
  return Count(*found, user, packed, TakePlanned(*found, step, user, packed, where));
}

absl::StatusOr<WorkspaceLease> WorkspaceManager::TakeSlot(Slot& slot, Stream& stream,
                                                          const std::string& user,
                                                          const PackedRequests& packed,
                                                          const Where& where) {
  HOLDFAST_RETURN_IF_ERROR(CheckFree(slot, /*planned=*/false, user));
  HOLDFAST_RETURN_IF_ERROR(CheckFits(user, packed, /*reserving=*/false, where));
  HOLDFAST_RETURN_IF_ERROR(GrowTo(std::max(bytes_, packed.total_bytes)));
  // Inside the gate first, then the question whether the pages are there: see admission_gate.h.
  HOLDFAST_ASSIGN_OR_RETURN(AdmissionGate::Pass pass, arena_.gate().Enter());
  if (arena_.asleep(options_.tag)) {
    return MakeError({.kind = ErrorKind::kAsleep, .object = options_.tag}, "the tag is asleep");
  }
  if (options_.poison) {
    HOLDFAST_RETURN_IF_ERROR(PreparePoison(slot, stream, packed.total_bytes));
  }
  WorkspaceLease lease;
  lease.manager_ = this;
  lease.record_ = MakeRecord(slot, user, packed, slot.range.base, /*planned=*/false);
  lease.stream_ = &stream;
  lease.pass_ = std::make_unique<AdmissionGate::Pass>(std::move(pass));
  return lease;
}

absl::StatusOr<WorkspaceLease> WorkspaceManager::TakePlanned(Slot& slot, StepContext& step,
                                                             const std::string& user,
                                                             const PackedRequests& packed,
                                                             const Where& where) {
  HOLDFAST_RETURN_IF_ERROR(CheckFree(slot, /*planned=*/true, user));
  // Before the lock a plan may be measured that is larger than the slots are yet.
  if (LockedNow()) {
    HOLDFAST_RETURN_IF_ERROR(CheckFits(user, packed, /*reserving=*/false, where));
  }
  WorkspaceLease lease;
  HOLDFAST_ASSIGN_OR_RETURN(lease.planned_,
                            step.Scratch(absl::StrCat("workspace of ", user), packed.total_bytes));
  if (options_.poison && packed.total_bytes > 0) {
    HOLDFAST_RETURN_IF_ERROR(step.Fill(lease.planned_.address(), kPoisonByte, packed.total_bytes));
  }
  lease.manager_ = this;
  lease.record_ = MakeRecord(slot, user, packed, lease.planned_.address(), /*planned=*/true);
  slot.captured = true;
  return lease;
}

absl::Status WorkspaceManager::CheckFree(Slot& slot, bool planned, const std::string& user) {
  if (user.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "workspace user"},
                     "has no name");
  }
  std::erase_if(slot.leases, [](const auto& record) { return record->over(); });
  for (const std::shared_ptr<LeaseRecord>& record : slot.leases) {
    if (planned && record->planned) continue;  // the step's plan keeps them apart
    return MakeError({.kind = ErrorKind::kBusy, .object = SlotName(slot.id)},
                     absl::StrCat("is leased to ", record->user,
                                  record->live.load() ? "" : ", who still uses a view",
                                  "; ask for both in one request, or after it is given back"));
  }
  return absl::OkStatus();
}

absl::Status WorkspaceManager::PreparePoison(Slot& slot, Stream& stream, std::uint64_t bytes) {
  Device& device = arena_.device();
  const DeviceAddress base = slot.range.base;
  std::optional<std::uint64_t> touched;
  if (slot.captured) slot.poisoned_bytes = 0;
  if (slot.poisoned_bytes > 0) {
    HOLDFAST_ASSIGN_OR_RETURN(touched,
                              FirstTouchedLeaf(device, stream, {base, slot.poisoned_bytes}));
  }
  // Only this call fails: the next finds poison again.
  const std::uint64_t begin = touched ? 0 : slot.poisoned_bytes;
  const std::uint64_t end = std::max(bytes, slot.poisoned_bytes);
  if (end > begin)
    HOLDFAST_RETURN_IF_ERROR(device.Fill(stream, base + begin, kPoisonByte, end - begin));
  slot.poisoned_bytes = end;
  if (!touched) return absl::OkStatus();
  return MakeError(
      {.kind = ErrorKind::kCorrupted, .object = SlotName(slot.id)},
      absl::StrCat("was written to while nobody had it; its last user was ", slot.last_user,
                   ", the first place lies in the 2 MiB from ", *touched * kHashLeafBytes, " on"));
}

std::shared_ptr<LeaseRecord> WorkspaceManager::MakeRecord(Slot& slot, const std::string& user,
                                                          const PackedRequests& packed,
                                                          DeviceAddress base, bool planned) {
  auto record = std::make_shared<LeaseRecord>();
  record->slot = slot.id;
  record->user = user;
  record->generation = ++generations_;
  record->planned = planned;
  record->requests = packed.requests;
  for (std::size_t i = 0; i < packed.requests.size(); ++i) {
    record->pieces.push_back({base + packed.offsets[i], packed.requests[i].bytes});
  }
  record->total_bytes = packed.total_bytes;
  slot.leases.push_back(record);
  slot.last_user = user;
  if (packed.total_bytes > slot.high_water_bytes) {
    slot.high_water_bytes = packed.total_bytes;
    slot.largest_user = user;
  }
  return record;
}

absl::StatusOr<WorkspaceLease> WorkspaceManager::Count(Slot& slot, const std::string& user,
                                                       const PackedRequests& packed,
                                                       absl::StatusOr<WorkspaceLease> lease) {
  MeasuredUse& use = measured_[{user, slot.id}];
  use.user = user;
  use.slot = slot.id;
  if (!lease.ok()) {
    ++use.refused;
    return lease;
  }
  ++use.calls;
  if (packed.total_bytes >= use.packed_bytes) {
    use.packed_bytes = packed.total_bytes;
    use.asked_bytes = packed.asked_bytes;
  }
  return lease;
}

absl::Status WorkspaceManager::EndLease(const LeaseRecord& record, Stream* stream) {
  std::unique_lock<std::mutex> lock(mutex_);
  HOLDFAST_ASSIGN_OR_RETURN(Slot* const slot, Find(record.slot));
  if (!options_.poison || stream == nullptr || record.total_bytes == 0) return absl::OkStatus();
  absl::Status filled;
  if (record.pins.load() == 0) {
    filled = arena_.device().Fill(*stream, slot->range.base, kPoisonByte, record.total_bytes);
    if (filled.ok()) {
      // The lease is still in the gate: no page goes before the poison lies.
      lock.unlock();
      return arena_.device().Synchronize(*stream);
    }
  }
  slot->poisoned_bytes = 0;  // somebody uses it still, or it could not be laid: nothing to look at
  return filled;
}

absl::StatusOr<SpanId> WorkspaceManager::CaptureSpan(WorkspaceSlot slot) {
  HOLDFAST_ASSIGN_OR_RETURN(Slot* const found, Find(slot));
  std::lock_guard<std::mutex> lock(mutex_);
  found->captured = true;
  return found->span;
}

}  // namespace holdfast
