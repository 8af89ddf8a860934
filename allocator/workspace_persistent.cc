// Resources that outlive a call: made once, zeroed once, of the type and shape of the first call.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/workspace.h"
#include "device/error.h"

namespace holdfast {
namespace {

absl::StatusOr<std::uint64_t> BytesOf(const PersistentSpec& spec) {
  const std::string name = absl::StrCat(spec.user, " ", spec.key);
  if (spec.user.empty() || spec.key.empty() || spec.shape.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name},
                     "a persistent resource has a user, a key and a shape");
  }
  std::uint64_t bytes = DTypeBytes(spec.type);
  for (const std::int64_t dimension : spec.shape) {
    if (dimension < 1) {
      return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name},
                       absl::StrCat("a dimension of its shape is ", dimension));
    }
    HOLDFAST_ASSIGN_OR_RETURN(bytes,
                              CheckedMultiply(bytes, static_cast<std::uint64_t>(dimension), name));
  }
  return bytes;
}

std::string Described(const PersistentSpec& spec) {
  return absl::StrCat(DTypeName(spec.type), " (", absl::StrJoin(spec.shape, ", "), ")");
}

}  // namespace

absl::StatusOr<WorkspaceManager::KeptResource*> WorkspaceManager::FindOrReserve(
    Slot& slot, const PersistentSpec& spec, std::uint64_t bytes, const Where& where) {
  const auto found = persistent_.find({slot.id, spec.key});
  const std::string name = absl::StrCat(SlotName(slot.id), ".persistent.", spec.key);
  if (found != persistent_.end()) {
    KeptResource& kept = found->second;
    if (kept.spec.type == spec.type && kept.spec.shape == spec.shape) return &kept;
    return MakeError(
        {.kind = ErrorKind::kInvalidArgument, .object = name, .need = bytes, .have = kept.bytes},
        absl::StrCat("is ", Described(kept.spec), " of ", kept.spec.user, "; ", spec.user,
                     " asks for ", Described(spec)));
  }
  if (LockedNow()) {
    return MakeError(
        {.kind = ErrorKind::kLocked, .object = name, .need = bytes},
        absl::StrCat("was not made before the workspace was locked; ", spec.user, " asks at ",
                     where.file_name(), ":", where.line(), " in ", where.function_name()));
  }
  HOLDFAST_ASSIGN_OR_RETURN(const SpanId span, arena_.Reserve({.name = name,
                                                               .tag = options_.tag,
                                                               .role = Role::kMutable,
                                                               .bytes = bytes,
                                                               .owner = spec.user,
                                                               .refill = nullptr,
                                                               .part = kPersistentPart}));
  return &persistent_.emplace(std::pair(slot.id, spec.key), KeptResource{spec, span, bytes})
              .first->second;
}

absl::StatusOr<PersistentResource> WorkspaceManager::Persistent(WorkspaceSlot slot,
                                                                const PersistentSpec& spec,
                                                                const Where& where) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t bytes, BytesOf(spec));
  HOLDFAST_ASSIGN_OR_RETURN(Slot* const found, Find(slot));
  std::lock_guard<std::mutex> lock(mutex_);
  if (arena_.asleep(options_.tag)) {
    return MakeError({.kind = ErrorKind::kAsleep, .object = options_.tag}, "the tag is asleep");
  }
  HOLDFAST_ASSIGN_OR_RETURN(KeptResource* const kept, FindOrReserve(*found, spec, bytes, where));
  // Pages are zeroed when they are made, and nobody had these bytes before.
  HOLDFAST_RETURN_IF_ERROR(arena_.Commit(kept->span));
  return PersistentResource{kept->span, arena_.range(kept->span)};
}

}  // namespace holdfast
