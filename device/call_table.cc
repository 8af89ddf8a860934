#include "device/call_table.h"

#include <vector>

#include "device/error.h"

namespace holdfast {

const char* CallName(Call call) {
  switch (call) {
    case Call::kReserveAddress: return "reserve address";
    case Call::kFreeAddress: return "free address";
    case Call::kCreateChunk: return "create chunk";
    case Call::kReleaseChunk: return "release chunk";
    case Call::kExportChunk: return "export chunk";
    case Call::kImportChunk: return "import chunk";
    case Call::kMap: return "map";
    case Call::kUnmap: return "unmap";
    case Call::kSetAccess: return "set access";
    case Call::kAllocateHost: return "allocate host";
    case Call::kFreeHost: return "free host";
    case Call::kCreateStream: return "create stream";
    case Call::kSynchronize: return "synchronize";
    case Call::kCreateEvent: return "create event";
    case Call::kRecordEvent: return "record event";
    case Call::kWaitEvent: return "wait event";
    case Call::kLaunch: return "launch";
    case Call::kCopy: return "copy";
    case Call::kFill: return "fill";
    case Call::kHash: return "hash";
    case Call::kHostFunction: return "host function";
    case Call::kPlanGemm: return "plan gemm";
    case Call::kGemm: return "gemm";
    case Call::kBeginCapture: return "begin capture";
    case Call::kEndCapture: return "end capture";
    case Call::kInstantiate: return "instantiate";
    case Call::kLaunchGraph: return "launch graph";
    case Call::kReleaseLocalMemory: return "release local memory";
    case Call::kRestoreLocalMemory: return "restore local memory";
    case Call::kCount_: break;
  }
  return "unknown call";
}

absl::Status CallTable::Enter(Call call) {
  if (!armed_.load(std::memory_order_acquire)) return absl::OkStatus();
  if (!counts_[Index(call)].load(std::memory_order_relaxed)) return absl::OkStatus();
  if (counted_.fetch_add(1) + 1 != fail_at_.load()) return absl::OkStatus();
  fired_.store(true);
  return MakeError({.kind = ErrorKind::kDriver, .object = "call table", .call = CallName(call)},
                   "injected failure");
}

void CallTable::FailAt(std::uint64_t k, std::vector<Call> calls) {
  armed_.store(false);
  for (std::atomic<bool>& counts : counts_) counts.store(calls.empty());
  for (const Call call : calls) counts_[Index(call)].store(true);
  fail_at_.store(k);
  counted_.store(0);
  fired_.store(false);
  armed_.store(true, std::memory_order_release);
}

bool CallTable::Disarm() {
  armed_.store(false);
  return fired_.exchange(false);
}

bool CallTable::Balanced() const {
  return succeeded(Call::kCreateChunk) + succeeded(Call::kImportChunk) ==
             succeeded(Call::kReleaseChunk) &&
         succeeded(Call::kMap) == succeeded(Call::kUnmap) &&
         succeeded(Call::kReserveAddress) == succeeded(Call::kFreeAddress) &&
         succeeded(Call::kAllocateHost) == succeeded(Call::kFreeHost);
}

}  // namespace holdfast
