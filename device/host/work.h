// What a stream of the host device does, as plain data: the same value is queued, recorded by a
// capture, replayed by a graph and shown to the audit.
#ifndef HOLDFAST_DEVICE_HOST_WORK_H_
#define HOLDFAST_DEVICE_HOST_WORK_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/address.h"
#include "device/hash.h"
#include "device/host/device_loss.h"
#include "device/host/fault_guard.h"
#include "device/host/host_event.h"
#include "device/host/host_memory.h"
#include "device/node_view.h"
#include "device/word_scan.h"

namespace holdfast {

// A copy of a kernel's parameter struct, aligned for any type a kernel may take.
class ParameterBytes {
 public:
  ParameterBytes(const void* data, std::size_t bytes);
  const void* data() const { return blocks_.data(); }
  std::size_t size() const { return bytes_; }

 private:
  struct alignas(64) Block {
    std::byte bytes[64];
  };
  std::vector<Block> blocks_;
  std::size_t bytes_;
};

struct KernelWork {
  std::string name;
  void (*run)(const void* params);
  ParameterBytes params;
};
struct HostFunctionWork {
  void (*function)(void*);
  void* argument;
};
struct HashWork {
  AddressRange range;
  Hash128* out;
};
struct ScanWork {
  AddressRange data;
  WordScan* scan;
};
struct RecordWork {
  std::shared_ptr<EventMarks> marks;
  std::uint64_t mark;
};
struct WaitWork {
  std::shared_ptr<const EventMarks> marks;
  std::uint64_t mark;
};
// One replay of a graph. The nodes are shared with the executable and never change.
struct GraphWork;
using Work = std::variant<KernelWork, CopyView, FillView, HostFunctionWork, HashWork, ScanWork,
                          RecordWork, WaitWork, GraphWork>;
struct GraphWork {
  std::shared_ptr<const std::vector<Work>> nodes;
};

// Runs `work` on the calling thread, which is an executor of `memory`. A fault loses the device; a
// graph stops at it. Host functions and waits run outside the executor: they may not touch device
// memory. Events are reached even on a lost device, so that nobody waits for ever.
void RunWork(const Work& work, HostMemory& memory, DeviceLoss& loss);

// A recorded node as the audit sees it. Hashes, scans, events and graphs are never recorded.
NodeView ViewOf(const Work& work);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_WORK_H_
