// A lease on scratch: who holds which pieces of a slot, until when.
//
// Addresses of a lease are good until it is released; contents are undefined at first and dead
// afterwards. A view is an address that knows its lease: kept across calls, or handed to another
// user, it refuses. A pin says that somebody is still using a view: a lease cannot be released
// under it.
#ifndef HOLDFAST_ALLOCATOR_WORKSPACE_LEASE_H_
#define HOLDFAST_ALLOCATOR_WORKSPACE_LEASE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/admission_gate.h"
#include "allocator/scratch_session.h"
#include "allocator/workspace_request.h"
#include "device/address.h"
#include "device/device.h"

namespace holdfast {

class WorkspaceManager;

// What a lease, its views and its pins share. Private to workspace_*.
struct LeaseRecord {
  WorkspaceSlot slot;
  std::string user;
  std::uint64_t generation = 0;  // counts the leases of a manager
  bool planned = false;          // lies in the scratch of a step
  std::vector<WorkspaceRequest> requests;
  std::vector<AddressRange> pieces;  // one a request
  std::uint64_t total_bytes = 0;     // from the first piece on
  std::atomic<bool> live{true};
  std::atomic<int> pins{0};

  bool over() const { return !live.load() && pins.load() == 0; }
};

// Holds a view in use. Move-only.
class WorkspacePin {
 public:
  WorkspacePin(WorkspacePin&& other) noexcept = default;
  WorkspacePin& operator=(WorkspacePin&&) = delete;
  ~WorkspacePin() {
    if (record_ != nullptr) record_->pins.fetch_sub(1);
  }
  AddressRange range() const { return range_; }

 private:
  friend class WorkspaceView;
  WorkspacePin(std::shared_ptr<LeaseRecord> record, AddressRange range)
      : record_(std::move(record)), range_(range) {}
  std::shared_ptr<LeaseRecord> record_;
  AddressRange range_;
};

// One piece of a lease, checked at each use. May be copied and kept; then it is stale.
class WorkspaceView {
 public:
  // kStale naming the piece and its user once the lease is over; kHeld if `user` is not the
  // lease's.
  absl::StatusOr<AddressRange> Resolve(const std::string& user) const;
  absl::StatusOr<WorkspacePin> Pin(const std::string& user) const;
  std::uint64_t generation() const { return record_->generation; }

 private:
  friend class WorkspaceLease;
  WorkspaceView(std::shared_ptr<LeaseRecord> record, std::size_t piece)
      : record_(std::move(record)), piece_(piece) {}
  std::shared_ptr<LeaseRecord> record_;
  std::size_t piece_;
};

// Move-only. Must not outlive the manager, nor, inside a step, the step's pass.
class WorkspaceLease {
 public:
  WorkspaceLease() = default;
  WorkspaceLease(WorkspaceLease&& other) noexcept;
  WorkspaceLease& operator=(WorkspaceLease&& other) noexcept;
  // As Release; where that would refuse, the slot stays taken until the last pin is gone.
  ~WorkspaceLease();

  std::size_t size() const { return record_ == nullptr ? 0 : record_->pieces.size(); }
  // Of the i-th request. kInvalidArgument beyond the last, kStale once released.
  absl::StatusOr<WorkspaceView> View(std::size_t i) const;
  // The same unchecked, for the call that took the lease. i < size().
  DeviceAddress address(std::size_t i) const { return record_->pieces[i].base; }
  AddressRange range(std::size_t i) const { return record_->pieces[i]; }
  std::uint64_t generation() const { return record_ == nullptr ? 0 : record_->generation; }
  bool live() const { return record_ != nullptr && record_->live.load(); }

  // Gives the pieces back; work already enqueued may still use them, since the next user of the
  // slot comes after it on the lane's stream. kClosed if there is nothing to give back (a second
  // time, or moved from). kHeld if it comes too early, while a view is pinned: nothing changed.
  absl::Status Release();

 private:
  friend class WorkspaceManager;
  absl::Status End();

  WorkspaceManager* manager_ = nullptr;
  std::shared_ptr<LeaseRecord> record_;
  Stream* stream_ = nullptr;                   // outside of steps: where the pieces are used
  std::unique_ptr<AdmissionGate::Pass> pass_;  // outside of steps: no page goes meanwhile
  ScratchBuffer planned_;                      // inside a step
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_WORKSPACE_LEASE_H_
