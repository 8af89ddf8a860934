// A captured graph as plain data: what the audit reads, the same on every device.
#ifndef HOLDFAST_DEVICE_NODE_VIEW_H_
#define HOLDFAST_DEVICE_NODE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {

enum class NodeKind {
  kKernel,
  kCopy,
  kFill,
  kHost,  // a host function; its pointers cannot be read
  kEmpty,
  kAllocation,  // driver-owned memory inside the graph
  kFree,
  kChild,       // children are flattened by the device; seen only if that failed
  kUnreadable,  // a kind or parameter layout this driver does not let us read
};
const char* NodeKindName(NodeKind kind);

// Where one side of a copy lies, as the driver recorded it.
enum class CopySide { kDevice, kHost, kUnified };

struct CopyView {
  std::uint64_t source = 0, destination = 0;  // addresses
  CopySide source_side = CopySide::kDevice, destination_side = CopySide::kDevice;
  std::uint64_t bytes = 0;
};

struct FillView {
  std::uint64_t destination = 0;
  std::uint64_t bytes = 0;
  std::uint32_t value = 0;
};

// One kernel parameter: its bytes, and where it sits in the parameter buffer. Words that can hold a
// pointer start where (offset + i) % 8 == 0.
struct ParameterView {
  std::uint32_t offset = 0;
  std::vector<std::byte> bytes;
};

struct NodeView {
  NodeKind kind = NodeKind::kEmpty;
  std::string name;  // kernel name, or the kind's name; plus why, for kUnreadable
  std::vector<ParameterView> parameters;  // kernels
  CopyView copy;                          // copies
  FillView fill;                          // fills
};

struct GraphView {
  std::vector<NodeView> nodes;                             // in a topological order
  std::vector<std::pair<std::size_t, std::size_t>> edges;  // (from, to), indices into nodes
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_NODE_VIEW_H_
