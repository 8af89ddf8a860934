#include "allocator/admission_gate.h"

#include <algorithm>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {
namespace {

// Between two looks at the word. Entrants stay inside for the microseconds of one launch.
constexpr std::chrono::microseconds kPollInterval{20};

}  // namespace

absl::StatusOr<AdmissionGate::Pass> AdmissionGate::Enter() {
  Pass pass = TryEnter();
  if (pass) return pass;
  return MakeError({.kind = ErrorKind::kBusy, .object = "admission gate"},
                   "closed by a transition");
}

absl::Status AdmissionGate::CloseWithoutFence(Deadline deadline) {
  if ((word_.fetch_or(kClosed, std::memory_order_acq_rel) & kClosed) != 0) {
    return MakeError({.kind = ErrorKind::kBusy, .object = "admission gate"}, "already closed");
  }
  while (word_.load(std::memory_order_acquire) != kClosed) {
    if (std::chrono::steady_clock::now() >= deadline) {
      const std::uint64_t inside = word_.load(std::memory_order_acquire) / kOne;
      Reopen();
      return MakeError({.kind = ErrorKind::kDeadlineExceeded, .object = "admission gate"},
                       absl::StrCat(inside, " replay(s) still inside"));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return absl::OkStatus();
}

absl::Status AdmissionGate::CloseAndDrain(Device& device, Deadline deadline) {
  HOLDFAST_RETURN_IF_ERROR(CloseWithoutFence(deadline));
  std::lock_guard<std::mutex> lock(mutex_);
  for (Stream* stream : streams_) {
    if (absl::Status fenced = device.SynchronizeBy(*stream, deadline); !fenced.ok()) {
      Reopen();
      return Annotate(fenced, absl::StrCat("draining stream ", stream->name()));
    }
  }
  return absl::OkStatus();
}

void AdmissionGate::Reopen() { word_.fetch_and(~kClosed, std::memory_order_acq_rel); }

void AdmissionGate::RegisterStream(Stream* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  streams_.push_back(stream);
}

void AdmissionGate::UnregisterStream(Stream* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  streams_.erase(std::remove(streams_.begin(), streams_.end(), stream), streams_.end());
}

}  // namespace holdfast
