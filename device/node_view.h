// A captured graph as plain data: what the audit reads, the same on every device.
#ifndef HOLDFAST_DEVICE_NODE_VIEW_H_
#define HOLDFAST_DEVICE_NODE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "device/address.h"

namespace holdfast {

enum class NodeKind {
  kKernel,
  kCopy,
  kFill,
  kMemoryOperation,  // waits for, or writes, single words in memory
  kHost,             // a host function; its pointers cannot be read
  kEmpty,
  kEvent,        // records or waits for an event from outside the graph: no memory
  kSemaphore,    // signals or waits for a semaphore of another API: may hold pointers of that API
  kAllocation,   // driver-owned memory inside the graph
  kFree,         // gives such memory back
  kConditional,  // its bodies were readable and follow it
  kChild,        // children are flattened by the device; seen only if that failed
  kUnreadable,   // a kind or parameter layout this driver does not let us read
};
const char* NodeKindName(NodeKind kind);

// Where one side of a copy lies, as the driver recorded it.
enum class CopySide { kDevice, kHost, kUnified };

// Of a copy with pitches the two sides reach differently far: a dense row of rows on one, rows with
// gaps on the other.
struct CopyView {
  std::uint64_t source = 0, destination = 0;  // addresses of the first byte
  CopySide source_side = CopySide::kDevice, destination_side = CopySide::kDevice;
  std::uint64_t bytes = 0;                                  // moved
  std::uint64_t source_extent = 0, destination_extent = 0;  // 0: dense, `bytes`

  std::uint64_t source_reach() const { return source_extent != 0 ? source_extent : bytes; }
  std::uint64_t destination_reach() const {
    return destination_extent != 0 ? destination_extent : bytes;
  }
};

struct FillView {
  std::uint64_t destination = 0;
  std::uint64_t bytes = 0;  // from the first byte written to the last, gaps between rows included
  std::uint32_t value = 0;
};

// A wait for, or a write of, one word in memory.
struct MemoryOperationView {
  std::uint64_t address = 0;
  std::uint32_t bytes = 4;
  bool write = false;
};

// One kernel parameter: its bytes, and where it sits in the parameter buffer. Words that can hold a
// pointer start where (offset + i) % 8 == 0.
struct ParameterView {
  using Bytes = absl::InlinedVector<std::byte, 32>;  // most are a word or a small struct

  std::uint32_t offset = 0;
  Bytes bytes;
};

struct NodeView {
  NodeKind kind = NodeKind::kEmpty;
  std::string name;  // kernel name, or the kind's name; plus why, for kUnreadable
  std::string
      scope;  // the nested graph it lies in: "child 3", "child 3/body 0 of 7"; "" at the top
  std::vector<ParameterView> parameters;        // kernels
  AddressRange policy_window;                   // kernels: what the cache is told to keep; or empty
  CopyView copy;                                // copies
  FillView fill;                                // fills
  std::vector<MemoryOperationView> operations;  // memory operations
};

struct GraphView {
  std::vector<NodeView> nodes;                             // in a topological order
  std::vector<std::pair<std::size_t, std::size_t>> edges;  // (from, to), indices into nodes
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_NODE_VIEW_H_
