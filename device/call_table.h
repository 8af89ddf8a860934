// Every device call passes here once, on both devices: counted, so that creates = releases can be
// proved, and failable, so that every error path can be walked by tests.
//
// Thread-safe. Counting is wait-free.
#ifndef HOLDFAST_DEVICE_CALL_TABLE_H_
#define HOLDFAST_DEVICE_CALL_TABLE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace holdfast {

enum class Call {
  kReserveAddress,
  kFreeAddress,
  kCreateChunk,
  kReleaseChunk,
  kExportChunk,
  kImportChunk,
  kMap,
  kUnmap,
  kSetAccess,
  kAllocateHost,
  kFreeHost,
  kCreateStream,
  kSynchronize,
  kCreateEvent,
  kRecordEvent,
  kWaitEvent,
  kLaunch,
  kCopy,
  kFill,
  kHash,
  kHostFunction,
  kPlanGemm,
  kGemm,
  kBeginCapture,
  kEndCapture,
  kInstantiate,
  kLaunchGraph,
  kReleaseLocalMemory,
  kRestoreLocalMemory,
  kCount_,  // number of calls, not a call
};
const char* CallName(Call call);

class CallTable {
 public:
  // Called before each device call. OK, or the injected error (kDriver, call = its name).
  absl::Status Enter(Call call);
  // Called after a call that succeeded.
  void Succeeded(Call call) { succeeded_[Index(call)].fetch_add(1, std::memory_order_relaxed); }

  std::uint64_t succeeded(Call call) const {
    return succeeded_[Index(call)].load(std::memory_order_relaxed);
  }

  // The k-th call from now (1 = the next), counting only `calls` (all if empty), fails once before
  // it reaches the device. Replaces an earlier arming.
  void FailAt(std::uint64_t k, std::vector<Call> calls = {});
  // Takes the arming back. Returns true if it had fired.
  bool Disarm();
  // Calls counted since FailAt, fired or not; tells a test where the last k lies.
  std::uint64_t counted() const { return counted_.load(); }

  // creates + imports = releases and maps = unmaps and reserves = frees and host allocations = host
  // frees.
  bool Balanced() const;

 private:
  static constexpr std::size_t Index(Call call) { return static_cast<std::size_t>(call); }
  static constexpr std::size_t kCalls = static_cast<std::size_t>(Call::kCount_);

  std::array<std::atomic<std::uint64_t>, kCalls> succeeded_{};
  std::atomic<bool> armed_{false};
  std::atomic<bool> fired_{false};
  std::atomic<std::uint64_t> fail_at_{0};
  std::atomic<std::uint64_t> counted_{0};
  std::array<std::atomic<bool>, kCalls> counts_{};  // which calls the arming counts
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CALL_TABLE_H_
