#include "device/cuda/node_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

// A lost device ends the reading; any other failure makes this one node unreadable.
absl::StatusOr<NodeView> UnlessLost(const absl::Status& status, const std::string& what) {
  if (IsErrorKind(status, ErrorKind::kDeviceLost)) return status;
  return UnreadableNode(what, std::string(status.message()));
}

NodeView Plain(NodeKind kind) {
  NodeView view;
  view.kind = kind;
  view.name = NodeKindName(kind);
  return view;
}

ParameterView CopyParameter(std::uint32_t offset, const void* from, std::size_t bytes) {
  const std::byte* const first = static_cast<const std::byte*>(from);
  return {.offset = offset, .bytes = {first, first + bytes}};
}

// The parameter buffer that a launch through `extra` carries: a list of (key, value) pairs, ended
// by a key.
struct ParameterBuffer {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
};

std::optional<ParameterBuffer> FindBuffer(void* const* extra) {
  ParameterBuffer buffer;
  bool has_size = false;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer.data = static_cast<const std::byte*>(extra[1]);
    } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      buffer.bytes = *static_cast<const std::size_t*>(extra[1]);
      has_size = true;
    } else {
      return std::nullopt;
    }
  }
  if (buffer.data == nullptr || !has_size) return std::nullopt;
  return buffer;
}

// The buffer cut by the layout. Where the layout does not cover it to the byte, the whole buffer is
// one parameter: no word may be missed because of how it was cut.
std::vector<ParameterView> CutBuffer(const ParameterBuffer& buffer, const FunctionLayout& layout) {
  std::vector<ParameterView> parameters;
  parameters.reserve(layout.parameters.size());
  std::size_t covered = 0;
  for (const FunctionLayout::Parameter& parameter : layout.parameters) {
    const std::size_t end = std::size_t{parameter.offset} + parameter.bytes;
    // Padding between parameters is below 8 bytes unless a type is over-aligned; then do not guess.
    if (end > buffer.bytes || parameter.offset < covered || parameter.offset - covered >= 8) {
      return {CopyParameter(0, buffer.data, buffer.bytes)};
    }
    parameters.push_back(
        CopyParameter(parameter.offset, buffer.data + parameter.offset, parameter.bytes));
    covered = end;
  }
  if (buffer.bytes - covered >= 8) return {CopyParameter(0, buffer.data, buffer.bytes)};
  return parameters;
}

// The range a kernel's launch attribute asks the cache to keep: it holds an address too. A driver
// that does not answer has none set.
AddressRange PolicyWindow(const CudaContext& context, CUgraphNode node) {
  CUkernelNodeAttrValue value = {};
  if (context.driver().GraphKernelNodeGetAttribute(
          node, CU_KERNEL_NODE_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value) != CUDA_SUCCESS) {
    return {};
  }
  const CUaccessPolicyWindow& window = value.accessPolicyWindow;
  if (window.num_bytes == 0) return {};
  return {{reinterpret_cast<std::uint64_t>(window.base_ptr)}, window.num_bytes};
}

// Into `view`: most nodes are kernels, and a view is costly to move.
absl::Status ReadKernel(const CudaContext& context, FunctionLayouts& layouts, CUgraphNode node,
                        NodeView& view) {
  const auto unless_lost = [&view](const absl::Status& status) {
    if (!IsErrorKind(status, ErrorKind::kDeviceLost)) {
      view = UnreadableNode("kernel", std::string(status.message()));
      return absl::OkStatus();
    }
    return status;
  };
  CUDA_KERNEL_NODE_PARAMS params = {};
  if (auto status = ToStatus(context.driver().GraphKernelNodeGetParams(node, &params),
                             "cuGraphKernelNodeGetParams");
      !status.ok()) {
    return unless_lost(status);
  }
  const auto layout = layouts.Of(params.func, params.kern);
  if (!layout.ok()) return unless_lost(layout.status());
  const FunctionLayout& function = **layout;

  view.kind = NodeKind::kKernel;
  view.name = function.name;
  view.policy_window = PolicyWindow(context, node);
  // The driver gives the parameters in one of two forms, whichever the launch used.
  if (params.extra != nullptr) {
    if (const auto buffer = FindBuffer(params.extra)) {
      view.parameters = CutBuffer(*buffer, function);
    } else {
      view = UnreadableNode(function.name, "parameters in an unknown form");
    }
    return absl::OkStatus();
  }
  if (params.kernelParams == nullptr && !function.parameters.empty()) {
    view = UnreadableNode(function.name, "the driver shows no parameters");
    return absl::OkStatus();
  }
  view.parameters.reserve(function.parameters.size());
  for (std::size_t i = 0; i < function.parameters.size(); ++i) {
    const FunctionLayout::Parameter& parameter = function.parameters[i];
    view.parameters.push_back(
        CopyParameter(parameter.offset, params.kernelParams[i], parameter.bytes));
  }
  return absl::OkStatus();
}

// One side of a copy: its first byte, and how far past it the copy reaches.
struct CopyEnd {
  std::uint64_t address = 0;
  CopySide side = CopySide::kDevice;
  std::uint64_t extent = 0;
};

struct CopyEndParams {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  std::size_t x, y, z, pitch, height;  // x in bytes, y in rows, z in slices of `height` rows
};

std::optional<CopyEnd> ReadCopyEnd(const CopyEndParams& end, const CUDA_MEMCPY3D& copy) {
  CopyEnd result;
  switch (end.type) {
    case CU_MEMORYTYPE_HOST:
      result.side = CopySide::kHost;
      result.address = reinterpret_cast<std::uint64_t>(end.host);
      break;
    case CU_MEMORYTYPE_DEVICE:
      result.side = CopySide::kDevice;
      result.address = end.device;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      result.side = CopySide::kUnified;
      result.address = end.device;
      break;
    default: return std::nullopt;  // an array: no linear address
  }
  // One-dimensional copies come with a pitch and a height of 0: rows and slices are then dense.
  const std::uint64_t pitch = end.pitch != 0 ? end.pitch : copy.WidthInBytes;
  const std::uint64_t slice = pitch * (end.height != 0 ? end.height : copy.Height);
  result.address += end.x + end.y * pitch + end.z * slice;
  if (copy.WidthInBytes != 0 && copy.Height != 0 && copy.Depth != 0) {
    result.extent = (copy.Depth - 1) * slice + (copy.Height - 1) * pitch + copy.WidthInBytes;
  }
  return result;
}

absl::StatusOr<NodeView> ReadCopy(const CudaContext& context, CUgraphNode node) {
  CUDA_MEMCPY3D copy = {};
  if (auto status = ToStatus(context.driver().GraphMemcpyNodeGetParams(node, &copy),
                             "cuGraphMemcpyNodeGetParams");
      !status.ok()) {
    return UnlessLost(status, "copy");
  }
  const auto source =
      ReadCopyEnd({copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes, copy.srcY,
                   copy.srcZ, copy.srcPitch, copy.srcHeight},
                  copy);
  const auto destination =
      ReadCopyEnd({copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes, copy.dstY,
                   copy.dstZ, copy.dstPitch, copy.dstHeight},
                  copy);
  if (!source || !destination) return UnreadableNode("copy", "one side is a CUDA array");
  NodeView view = Plain(NodeKind::kCopy);
  view.copy = {.source = source->address,
               .destination = destination->address,
               .source_side = source->side,
               .destination_side = destination->side,
               .bytes = std::uint64_t{copy.WidthInBytes} * copy.Height * copy.Depth,
               .source_extent = source->extent,
               .destination_extent = destination->extent};
  return view;
}

absl::StatusOr<NodeView> ReadFill(const CudaContext& context, CUgraphNode node) {
  CUDA_MEMSET_NODE_PARAMS params = {};
  if (auto status = ToStatus(context.driver().GraphMemsetNodeGetParams(node, &params),
                             "cuGraphMemsetNodeGetParams");
      !status.ok()) {
    return UnlessLost(status, "fill");
  }
  const std::uint64_t row = std::uint64_t{params.elementSize} * params.width;
  const std::uint64_t rows_before_last = params.height > 1 ? params.height - 1 : 0;
  NodeView view = Plain(NodeKind::kFill);
  view.fill = {
      .destination = params.dst,
      .bytes = params.pitch * rows_before_last + row,  // width is in elements, pitch in bytes
      .value = params.value};
  return view;
}

absl::StatusOr<NodeView> ReadMemoryOperations(const CudaContext& context, CUgraphNode node) {
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = {};
  if (auto status = ToStatus(context.driver().GraphBatchMemOpNodeGetParams(node, &params),
                             "cuGraphBatchMemOpNodeGetParams");
      !status.ok()) {
    return UnlessLost(status, "memory operation");
  }
  NodeView view = Plain(NodeKind::kMemoryOperation);
  for (unsigned i = 0; i < params.count; ++i) {
    const CUstreamBatchMemOpParams& operation = params.paramArray[i];
    switch (operation.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        view.operations.push_back(
            {.address = operation.waitValue.address,
             .bytes = operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ? 8u : 4u});
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        view.operations.push_back(
            {.address = operation.writeValue.address,
             .bytes = operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 8u : 4u,
             .write = true});
        break;
      case CU_STREAM_MEM_OP_BARRIER:
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: break;  // no address
      default:
        return UnreadableNode(view.name, absl::StrCat("operation ", operation.operation,
                                                      " is not known to this build"));
    }
  }
  return view;
}

// Any node but a kernel.
absl::StatusOr<NodeView> ReadOther(const CudaContext& context, CUgraphNode node,
                                   CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY: return ReadCopy(context, node);
    case CU_GRAPH_NODE_TYPE_MEMSET: return ReadFill(context, node);
    case CU_GRAPH_NODE_TYPE_HOST: return Plain(NodeKind::kHost);
    case CU_GRAPH_NODE_TYPE_EMPTY: return Plain(NodeKind::kEmpty);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return Plain(NodeKind::kAllocation);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return Plain(NodeKind::kFree);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return ReadMemoryOperations(context, node);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return Plain(NodeKind::kEvent);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return Plain(NodeKind::kSemaphore);
    default:
      return UnreadableNode(absl::StrCat("node of type ", static_cast<int>(type)),
                            "not known to this build");
  }
}

}  // namespace

NodeView UnreadableNode(const std::string& what, const std::string& why) {
  NodeView view = Plain(NodeKind::kUnreadable);
  view.name = absl::StrCat(view.name, ": ", what, ": ", why);
  return view;
}

absl::Status ReadNode(const CudaContext& context, FunctionLayouts& layouts, CUgraphNode node,
                      CUgraphNodeType type, NodeView& view) {
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) return ReadKernel(context, layouts, node, view);
  HOLDFAST_ASSIGN_OR_RETURN(view, ReadOther(context, node, type));
  return absl::OkStatus();
}

}  // namespace holdfast
