// The workspace's life: slots, declared needs, growth in place, the lock.
#include "allocator/workspace.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr int kMostSlotsEachWay = 64;

absl::Status CheckCount(const char* field, int count) {
  if (count >= 1 && count <= kMostSlotsEachWay) return absl::OkStatus();
  return MakeError(
      {.kind = ErrorKind::kInvalidArgument, .object = absl::StrCat("workspace ", field)},
      absl::StrCat("is ", count, "; must be 1 to ", kMostSlotsEachWay));
}

absl::Status CheckOptions(const WorkspaceOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(CheckCount("lanes", options.lanes));
  HOLDFAST_RETURN_IF_ERROR(CheckCount("micro_batches", options.micro_batches));
  const std::pair<const char*, bool> given[] = {{"extent_bytes", options.extent_bytes > 0},
                                                {"persistent_bytes", options.persistent_bytes > 0},
                                                {"chunk_bytes", options.chunk_bytes > 0},
                                                {"tag", !options.tag.empty()}};
  for (const auto& [field, ok] : given) {
    if (ok) continue;
    return MakeError(
        {.kind = ErrorKind::kInvalidArgument, .object = absl::StrCat("workspace ", field)},
        "is empty; must be above 0, or a name");
  }
  return absl::OkStatus();
}

std::vector<WorkspaceSlot> SlotsOf(const WorkspaceOptions& options) {
  std::vector<WorkspaceSlot> slots;
  for (int micro_batch = 0; micro_batch < options.micro_batches; ++micro_batch) {
    for (int lane = 0; lane < options.lanes; ++lane) slots.push_back({lane, micro_batch});
  }
  return slots;
}

absl::Status OverridesBelowNeed(const std::string& user, std::uint64_t need, std::uint64_t have) {
  return MakeError(
      {.kind = ErrorKind::kOutOfExtent,
       .object = kWorkspaceBytesVariable,
       .need = need,
       .have = have},
      absl::StrCat("is below what ", user, " needs; raise it, unset it, or insist with ",
                   kWorkspaceForceVariable, "=1"));
}

}  // namespace

absl::StatusOr<std::vector<GroupSpec>> WorkspaceManager::Groups(const WorkspaceOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(CheckOptions(options));
  std::vector<GroupSpec> groups;
  // Each slot in a group of its own: pages are a group's first bytes, and every slot grows alone.
  for (const WorkspaceSlot slot : SlotsOf(options)) {
    groups.push_back({.tag = options.tag,
                      .role = Role::kScratch,
                      .extent_bytes = options.extent_bytes,
                      .chunk_bytes = options.chunk_bytes,
                      .part = SlotName(slot)});
  }
  groups.push_back({.tag = options.tag,
                    .role = Role::kMutable,
                    .extent_bytes = options.persistent_bytes,
                    .chunk_bytes = options.chunk_bytes,
                    .part = kPersistentPart});
  return groups;
}

absl::StatusOr<std::unique_ptr<WorkspaceManager>> WorkspaceManager::Create(
    Arena& arena, WorkspaceOptions options) {
  HOLDFAST_RETURN_IF_ERROR(CheckOptions(options));
  const std::uint64_t forced = options.overrides.slot_bytes.value_or(0);
  if (forced > options.extent_bytes) {
    return MakeError({.kind = ErrorKind::kOutOfExtent,
                      .object = kWorkspaceBytesVariable,
                      .need = forced,
                      .have = options.extent_bytes},
                     "is above the address space of a slot");
  }
  auto manager = std::unique_ptr<WorkspaceManager>(new WorkspaceManager(arena, std::move(options)));
  HOLDFAST_RETURN_IF_ERROR(manager->ReserveSlots());
  manager->bytes_ = forced;
  if (forced > 0) manager->Tell(kWorkspaceBytesVariable, forced, "environment");
  if (manager->options_.overrides.force) manager->Tell(kWorkspaceForceVariable, 1, "environment");
  return manager;
}

absl::Status WorkspaceManager::ReserveSlots() {
  for (const WorkspaceSlot id : SlotsOf(options_)) {
    const std::string name = SlotName(id);
    HOLDFAST_ASSIGN_OR_RETURN(
        const SpanId span,
        arena_.Reserve(
            {.name = name + ".workspace",
             .tag = options_.tag,
             .role = Role::kScratch,
             .bytes = options_.extent_bytes,
             .owner = "workspace",
             .wake_contents = options_.poison ? WakeContents::kPoison : WakeContents::kUndefined,
             .refill = nullptr,
             .part = name}));
    slots_.push_back({.id = id, .span = span, .range = arena_.range(span)});
  }
  return absl::OkStatus();
}

void WorkspaceManager::Tell(const char* name, std::uint64_t value, const char* origin) const {
  if (options_.on_setting) options_.on_setting({name, absl::StrCat(value), origin});
}

absl::StatusOr<WorkspaceManager::Slot*> WorkspaceManager::Find(WorkspaceSlot slot) {
  const std::pair<const char*, std::pair<int, int>> fields[] = {
      {"lane", {slot.lane, options_.lanes}},
      {"micro-batch", {slot.micro_batch, options_.micro_batches}}};
  for (const auto& [field, value] : fields) {
    if (value.first >= 0 && value.first < value.second) continue;
    return MakeError(
        {.kind = ErrorKind::kInvalidArgument, .object = absl::StrCat("workspace ", field)},
        absl::StrCat("is ", value.first, "; must be 0 to ", value.second - 1));
  }
  return &slots_[static_cast<std::size_t>(slot.micro_batch * options_.lanes + slot.lane)];
}

absl::Status WorkspaceManager::CheckFits(const std::string& user, const PackedRequests& packed,
                                         bool reserving, const Where& where) const {
  const std::uint64_t need = packed.total_bytes;
  if (need <= bytes_) return absl::OkStatus();
  if (LockedNow()) {
    return MakeError({.kind = ErrorKind::kLocked, .object = user, .need = need, .have = bytes_},
                     absl::StrCat("asks more of the workspace than was locked: ",
                                  DescribeRequests(packed.requests), "; at ", where.file_name(),
                                  ":", where.line(), " in ", where.function_name()));
  }
  if (need > options_.extent_bytes) {
    return MakeError({.kind = ErrorKind::kOutOfExtent,
                      .object = user,
                      .need = need,
                      .have = options_.extent_bytes},
                     absl::StrCat("is more than the address space of a slot: ",
                                  DescribeRequests(packed.requests)));
  }
  const bool overridden = options_.overrides.slot_bytes.has_value();
  if (!overridden || (reserving && options_.overrides.force)) return absl::OkStatus();
  return OverridesBelowNeed(user, need, bytes_);
}

absl::Status WorkspaceManager::Reserve(const std::string& user,
                                       const std::vector<WorkspaceRequest>& requests,
                                       const Where& where) {
  HOLDFAST_ASSIGN_OR_RETURN(PackedRequests packed, PackRequests(requests));
  if (user.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "workspace user"},
                     "has no name");
  }
  std::lock_guard<std::mutex> lock(mutex_);
  HOLDFAST_RETURN_IF_ERROR(CheckFits(user, packed, /*reserving=*/true, where));
  if (!options_.overrides.slot_bytes) bytes_ = std::max(bytes_, packed.total_bytes);
  DeclaredUse& declared = declared_[user];
  if (declared.user.empty() || packed.total_bytes > declared.packed_bytes) {
    declared = {.user = user,
                .requests = std::move(packed.requests),
                .asked_bytes = packed.asked_bytes,
                .packed_bytes = packed.total_bytes};
  }
  return absl::OkStatus();
}

absl::Status WorkspaceManager::GrowTo(std::uint64_t bytes) {
  std::vector<SpanPrefix> prefixes;
  bool committed = true;
  for (const Slot& slot : slots_) {
    prefixes.push_back({slot.span, bytes});
    committed = committed && arena_.committed_bytes(slot.span) >= bytes;
  }
  // Without pages to add, no transition is waited for.
  if (!committed) HOLDFAST_RETURN_IF_ERROR(arena_.CommitTogether(prefixes));
  bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status WorkspaceManager::Commit() {
  std::lock_guard<std::mutex> lock(mutex_);
  return GrowTo(bytes_);
}

absl::Status WorkspaceManager::Lock() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (locked_) {
    return MakeError({.kind = ErrorKind::kLocked, .object = options_.tag},
                     "the workspace is locked already");
  }
  HOLDFAST_RETURN_IF_ERROR(GrowTo(bytes_));
  locked_ = true;
  Tell("workspace slot bytes", bytes_,
       options_.overrides.slot_bytes ? "environment" : "declared need");
  return absl::OkStatus();
}

bool WorkspaceManager::locked() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return LockedNow();
}

}  // namespace holdfast
