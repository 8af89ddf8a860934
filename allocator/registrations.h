// Who else refers to an arena's pages: exports, communicators, RDMA, second mappings.
//
// Physical pages change at every wake, and whoever registered the old ones reads or writes memory
// that belongs to somebody else. So each holder is written down, either with hooks that let go
// before the pages leave and take hold again when they are back, or without: then sleep refuses
// and names it.
#ifndef HOLDFAST_ALLOCATOR_REGISTRATIONS_H_
#define HOLDFAST_ALLOCATOR_REGISTRATIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/span.h"

namespace holdfast {

enum class HolderKind { kExport, kCommunicator, kRdma, kPeerMapping, kWritableAlias, kOther };
const char* HolderKindName(HolderKind kind);  // "export", "communicator", ...

// Called inside the transition: must not reserve, commit, sleep or wake in this arena.
using HolderHook = std::function<absl::Status(const SpanInfo& span)>;

struct Registration {
  std::string holder;  // "communicator 0": what a refusal names
  HolderKind kind = HolderKind::kOther;
  std::vector<SpanId> spans;  // what it refers to; at least one
  // May write to the pages, so that a read-only mapping of ours proves nothing about them: while
  // it stands, sealed contents are compared by hash like all others.
  bool writes = true;
  // Both or neither. before_unmap: let go of the old pages (none of our work runs any more).
  // after_map: take hold of the new ones, whose contents are back; before the tag counts as awake.
  HolderHook before_unmap;
  HolderHook after_map;
};

struct RegistrationId {
  std::uint64_t value = 0;
  auto operator<=>(const RegistrationId&) const = default;
};

struct RegisteredHolder {
  RegistrationId id;
  Registration registration;
};

// Thread-safe.
class Registrations {
 public:
  // kInvalidArgument: no name, no span, or one hook of the two.
  absl::StatusOr<RegistrationId> Add(Registration registration);
  // kNotFound.
  absl::Status Remove(RegistrationId id);
  // In the order they were added; hooks are called in this order before unmapping and in the
  // opposite one after mapping.
  std::vector<RegisteredHolder> all() const;
  // The first that refers to the span; nullopt if none does.
  std::optional<RegisteredHolder> HolderOf(SpanId span) const;
  // How many holders that may write were ever added: contents that were read-only before the last
  // one may have changed since.
  std::uint64_t writers_added() const;

 private:
  mutable std::mutex mutex_;
  std::map<RegistrationId, Registration> by_id_;
  std::uint64_t next_ = 1;
  std::uint64_t writers_added_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_REGISTRATIONS_H_
