// Reads one node of a captured CUDA graph into plain data.
#ifndef HOLDFAST_DEVICE_CUDA_NODE_READER_H_
#define HOLDFAST_DEVICE_CUDA_NODE_READER_H_

#include <cuda.h>

#include "absl/status/status.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/function_layouts.h"
#include "device/node_view.h"

namespace holdfast {

// Into a new `view`; of any type but a child graph or a conditional. Bytes are copied: the driver's
// node is not referred to afterwards. A node that cannot be read becomes kUnreadable, with the
// reason in its name; the only error is a lost device.
absl::Status ReadNode(const CudaContext& context, FunctionLayouts& layouts, CUgraphNode node,
                      CUgraphNodeType type, NodeView& view);

// A node that could not be read: "unreadable: <what>: <why>".
NodeView UnreadableNode(const std::string& what, const std::string& why);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_NODE_READER_H_
