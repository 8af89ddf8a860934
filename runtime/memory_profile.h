// What profiling finds out, and in which order it may: a chain of values, each made from the one
// before it, so that a step left out or taken too early does not compile.
//
//   OpenProfile   what this process held before anything was loaded
//     |  Hold     what is kept for the backends' lives, and the scratch, are there, under a lease
//   HeldProfile   every bucket's worst shape runs; Observe after each
//     |  Close    the closing measurement, with all of that alive
//   ClosedProfile
//     |  Release  only now may the lease end
//   MemoryProfile the figures; graphs, warm-up and lock follow
//
// Only this process's own bytes count: what a neighbour takes or gives back meanwhile is in no
// figure but free_bytes.
#ifndef HOLDFAST_RUNTIME_MEMORY_PROFILE_H_
#define HOLDFAST_RUNTIME_MEMORY_PROFILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "device/device.h"

namespace holdfast {

// Whose bytes a snapshot counts.
enum class Counting {
  kOwn,     // this process's, where the driver tells processes apart; else as kDevice
  kDevice,  // all that is not free: neighbours too. For drivers that give no figure, and for the
            // negative control
};

struct MemorySnapshot {
  std::uint64_t held_bytes = 0;   // by this process; by everybody if !own
  std::uint64_t chunk_bytes = 0;  // of it, our chunks
  std::uint64_t free_bytes = 0;   // on the whole device
  bool own = true;
};
absl::StatusOr<MemorySnapshot> TakeSnapshot(const Device& device,
                                            Counting counting = Counting::kOwn);

// What has to stay alive until the closing measurement. Given up by Release alone; destroyed with a
// profile that was abandoned.
class ProfileLease {
 public:
  virtual ~ProfileLease() = default;
  virtual std::uint64_t bytes() const = 0;
  virtual absl::Status Release() = 0;
};

// A lease on spans of an arena: while it lasts, sleep, Free and Uncommit refuse them (kHeld, naming
// it). All are committed; kInvalidArgument naming the first that is not. The arena outlives it.
absl::StatusOr<std::unique_ptr<ProfileLease>> LeaseSpans(Arena& arena, const std::string& name,
                                                         const std::vector<SpanId>& spans);

struct MemoryProfile {
  MemorySnapshot opening, closing;
  std::uint64_t lease_bytes = 0;    // alive at the closing measurement
  std::uint64_t highest_bytes = 0;  // held_bytes of all observations
  std::string highest_at;           // which one
  std::uint64_t observations = 0;

  // Held more at the end than at the beginning; below 0 if something was given back.
  std::int64_t grown_bytes() const {
    return static_cast<std::int64_t>(closing.held_bytes) -
           static_cast<std::int64_t>(opening.held_bytes);
  }
  // Held for a while, and gone at the end.
  std::uint64_t transient_bytes() const {
    return highest_bytes > closing.held_bytes ? highest_bytes - closing.held_bytes : 0;
  }
};

class OpenProfile {
 public:
  static absl::StatusOr<OpenProfile> Begin(const Device& device,
                                           Counting counting = Counting::kOwn);
  const MemorySnapshot& opening() const { return figures_.opening; }

 private:
  friend class HeldProfile;
  friend class ClosedProfile;
  OpenProfile(const Device& device, Counting counting) : device_(&device), counting_(counting) {}
  const Device* device_;
  Counting counting_;
  MemoryProfile figures_;
};

// Move-only, as all that hold the lease. There is no way to its lease but through Close.
class HeldProfile {
 public:
  // kInvalidArgument without a lease.
  static absl::StatusOr<HeldProfile> Hold(OpenProfile open, std::unique_ptr<ProfileLease> lease);
  // After a bucket's run, nothing of ours running.
  absl::Status Observe(const std::string& bucket);

 private:
  friend class ClosedProfile;
  HeldProfile(OpenProfile open, std::unique_ptr<ProfileLease> lease)
      : open_(std::move(open)), lease_(std::move(lease)) {}
  OpenProfile open_;
  std::unique_ptr<ProfileLease> lease_;
};

class ClosedProfile {
 public:
  // The closing measurement. On failure `held` is as it was.
  static absl::StatusOr<ClosedProfile> Close(HeldProfile&& held);
  // Ends the lease. On failure the lease goes with `closed`.
  static absl::StatusOr<MemoryProfile> Release(ClosedProfile&& closed);

 private:
  ClosedProfile(MemoryProfile figures, std::unique_ptr<ProfileLease> lease)
      : figures_(std::move(figures)), lease_(std::move(lease)) {}
  MemoryProfile figures_;
  std::unique_ptr<ProfileLease> lease_;
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_MEMORY_PROFILE_H_
