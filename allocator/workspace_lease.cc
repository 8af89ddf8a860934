#include "allocator/workspace_lease.h"

#include "absl/strings/str_cat.h"
#include "allocator/workspace.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<AddressRange> WorkspaceView::Resolve(const std::string& user) const {
  const std::string piece = absl::StrCat(record_->user, " ", record_->requests[piece_].name);
  if (!record_->live.load()) {
    return MakeError({.kind = ErrorKind::kStale, .object = piece},
                     absl::StrCat("a view of lease ", record_->generation, " of ",
                                  SlotName(record_->slot), " was kept: that lease is over"));
  }
  if (user != record_->user) {
    return MakeError({.kind = ErrorKind::kHeld, .object = piece},
                     absl::StrCat("is leased to ", record_->user, ", not to ", user));
  }
  return record_->pieces[piece_];
}

absl::StatusOr<WorkspacePin> WorkspaceView::Pin(const std::string& user) const {
  // Counted first: a release either sees the pin, or had come before and is seen here.
  record_->pins.fetch_add(1);
  WorkspacePin pin(record_, record_->pieces[piece_]);
  HOLDFAST_RETURN_IF_ERROR(Resolve(user).status());
  return pin;
}

WorkspaceLease::WorkspaceLease(WorkspaceLease&& other) noexcept { *this = std::move(other); }

WorkspaceLease& WorkspaceLease::operator=(WorkspaceLease&& other) noexcept {
  if (this == &other) return *this;
  if (live()) End().IgnoreError();
  manager_ = std::exchange(other.manager_, nullptr);
  record_ = std::exchange(other.record_, nullptr);
  stream_ = std::exchange(other.stream_, nullptr);
  pass_ = std::exchange(other.pass_, nullptr);
  planned_ = std::move(other.planned_);
  return *this;
}

WorkspaceLease::~WorkspaceLease() {
  if (live()) End().IgnoreError();
}

absl::StatusOr<WorkspaceView> WorkspaceLease::View(std::size_t i) const {
  if (!live()) {
    return MakeError({.kind = ErrorKind::kStale, .object = "workspace lease"}, "it is over");
  }
  if (i >= size()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = record_->user},
                     absl::StrCat("piece ", i, " of a lease of ", size()));
  }
  return WorkspaceView(record_, i);
}

absl::Status WorkspaceLease::Release() {
  if (!live()) {
    return MakeError({.kind = ErrorKind::kClosed,
                      .object = record_ == nullptr ? "workspace lease" : record_->user},
                     "the lease was given back already");
  }
  if (record_->pins.load() > 0) {
    return MakeError(
        {.kind = ErrorKind::kHeld, .object = record_->user},
        absl::StrCat("released too early: ", record_->pins.load(), " of its views are in use"));
  }
  return End();
}

absl::Status WorkspaceLease::End() {
  record_->live.store(false);
  absl::Status status = manager_->EndLease(*record_, stream_);
  planned_.Release();
  pass_.reset();
  stream_ = nullptr;
  return status;
}

}  // namespace holdfast
