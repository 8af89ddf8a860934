#include "runtime/memory_profile.h"

#include <algorithm>

#include "device/error.h"

namespace holdfast {
namespace {

class SpanLease : public ProfileLease {
 public:
  SpanLease(Arena& arena, RegistrationId id, std::uint64_t bytes)
      : arena_(arena), id_(id), bytes_(bytes) {}
  ~SpanLease() override {
    if (id_.value != 0) arena_.registrations().Remove(id_).IgnoreError();
  }
  std::uint64_t bytes() const override { return bytes_; }
  absl::Status Release() override {
    return arena_.registrations().Remove(std::exchange(id_, RegistrationId{}));
  }

 private:
  Arena& arena_;
  RegistrationId id_;  // 0: given up
  std::uint64_t bytes_;
};

}  // namespace

absl::StatusOr<MemorySnapshot> TakeSnapshot(const Device& device, Counting counting) {
  HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse use, device.Memory());
  // A GPU always holds something for us; on the host device nothing may be all there is.
  const bool tells = !device.info().is_cuda || use.process_bytes > 0;
  MemorySnapshot snapshot{.chunk_bytes = use.own_bytes,
                          .free_bytes = use.free_bytes,
                          .own = tells && counting == Counting::kOwn};
  const std::uint64_t capacity = device.info().capacity_bytes;
  snapshot.held_bytes =
      snapshot.own ? use.process_bytes : capacity - std::min(capacity, use.free_bytes);
  return snapshot;
}

absl::StatusOr<std::unique_ptr<ProfileLease>> LeaseSpans(Arena& arena, const std::string& name,
                                                         const std::vector<SpanId>& spans) {
  std::uint64_t bytes = 0;
  for (const SpanId span : spans) {
    const std::uint64_t committed = arena.committed_bytes(span);
    if (committed == 0) {
      return MakeError({.kind = ErrorKind::kInvalidArgument, .object = arena.span(span).spec.name},
                       "no pages stand behind it: nothing to measure");
    }
    bytes += committed;
  }
  HOLDFAST_ASSIGN_OR_RETURN(
      const RegistrationId id,
      arena.registrations().Add({.holder = name, .spans = spans, .writes = false}));
  return std::make_unique<SpanLease>(arena, id, bytes);
}

absl::StatusOr<OpenProfile> OpenProfile::Begin(const Device& device, Counting counting) {
  OpenProfile open(device, counting);
  HOLDFAST_ASSIGN_OR_RETURN(open.figures_.opening, TakeSnapshot(device, counting));
  return open;
}

absl::StatusOr<HeldProfile> HeldProfile::Hold(OpenProfile open,
                                              std::unique_ptr<ProfileLease> lease) {
  if (lease == nullptr) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "profile"},
                     "held without a lease");
  }
  return HeldProfile(std::move(open), std::move(lease));
}

absl::Status HeldProfile::Observe(const std::string& bucket) {
  HOLDFAST_ASSIGN_OR_RETURN(const MemorySnapshot now,
                            TakeSnapshot(*open_.device_, open_.counting_));
  MemoryProfile& figures = open_.figures_;
  ++figures.observations;
  if (now.held_bytes <= figures.highest_bytes) return absl::OkStatus();
  figures.highest_bytes = now.held_bytes;
  figures.highest_at = bucket;
  return absl::OkStatus();
}

absl::StatusOr<ClosedProfile> ClosedProfile::Close(HeldProfile&& held) {
  MemoryProfile figures = held.open_.figures_;
  HOLDFAST_ASSIGN_OR_RETURN(figures.closing,
                            TakeSnapshot(*held.open_.device_, held.open_.counting_));
  figures.lease_bytes = held.lease_->bytes();
  return ClosedProfile(std::move(figures), std::move(held.lease_));
}

absl::StatusOr<MemoryProfile> ClosedProfile::Release(ClosedProfile&& closed) {
  const std::unique_ptr<ProfileLease> lease = std::move(closed.lease_);
  if (lease == nullptr) {
    return MakeError({.kind = ErrorKind::kClosed, .object = "profile"}, "released twice");
  }
  HOLDFAST_RETURN_IF_ERROR(lease->Release());
  return std::move(closed.figures_);
}

}  // namespace holdfast
