#include "allocator/registrations.h"

#include <algorithm>
#include <utility>

#include "device/error.h"

namespace holdfast {

const char* HolderKindName(HolderKind kind) {
  switch (kind) {
    case HolderKind::kExport: return "export";
    case HolderKind::kCommunicator: return "communicator";
    case HolderKind::kRdma: return "RDMA";
    case HolderKind::kPeerMapping: return "peer mapping";
    case HolderKind::kWritableAlias: return "writable alias";
    case HolderKind::kOther: return "other";
  }
  return "unknown holder";
}

absl::StatusOr<RegistrationId> Registrations::Add(Registration registration) {
  const auto invalid = [&](const std::string& message) {
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = registration.holder.empty() ? "holder" : registration.holder},
                     message);
  };
  if (registration.holder.empty()) return invalid("no name");
  if (registration.spans.empty()) return invalid("refers to no span");
  if ((registration.before_unmap == nullptr) != (registration.after_map == nullptr)) {
    return invalid("one hook of the two");
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const RegistrationId id{next_++};
  by_id_.emplace(id, std::move(registration));
  return id;
}

absl::Status Registrations::Remove(RegistrationId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (by_id_.erase(id) != 0) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kNotFound, .object = "holder"}, "no such registration");
}

std::vector<RegisteredHolder> Registrations::all() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<RegisteredHolder> holders;
  for (const auto& [id, registration] : by_id_) holders.push_back({id, registration});
  return holders;
}

std::optional<RegisteredHolder> Registrations::HolderOf(SpanId span) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, registration] : by_id_) {
    const std::vector<SpanId>& spans = registration.spans;
    if (std::find(spans.begin(), spans.end(), span) != spans.end()) {
      return RegisteredHolder{id, registration};
    }
  }
  return std::nullopt;
}

}  // namespace holdfast
