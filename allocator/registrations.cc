#include "allocator/registrations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {

const char* HolderKindName(HolderKind kind) {
  switch (kind) {
    case HolderKind::kExport: return "export";
    case HolderKind::kCommunicator: return "communicator";
    case HolderKind::kRdma: return "rdma";
    case HolderKind::kPeerMapping: return "peer mapping";
    case HolderKind::kWritableAlias: return "writable alias";
    case HolderKind::kOther: return "other";
  }
  return "?";
}

absl::StatusOr<RegistrationId> Registrations::Add(Registration registration) {
  const auto invalid = [&](const std::string& message) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = registration.holder}, message);
  };
  if (registration.holder.empty()) return invalid("a holder without a name");
  if (registration.spans.empty()) return invalid("a holder of no span");
  if ((registration.before_unmap == nullptr) != (registration.after_map == nullptr)) {
    return invalid("one hook of the two");
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (registration.writes) ++writers_added_;
  const RegistrationId id{next_++};
  by_id_.emplace(id, std::move(registration));
  return id;
}

absl::Status Registrations::Remove(RegistrationId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (by_id_.erase(id) > 0) return absl::OkStatus();
  return MakeError(
      {.kind = ErrorKind::kNotFound, .object = absl::StrCat("registration ", id.value)},
      "no such registration");
}

std::vector<RegisteredHolder> Registrations::all() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<RegisteredHolder> all;
  for (const auto& [id, registration] : by_id_) all.push_back({id, registration});
  return all;
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

std::uint64_t Registrations::writers_added() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return writers_added_;
}

}  // namespace holdfast
