// Reads a captured CUDA graph into plain data.
#ifndef HOLDFAST_DEVICE_CUDA_GRAPH_VIEW_H_
#define HOLDFAST_DEVICE_CUDA_GRAPH_VIEW_H_

#include <cuda.h>

#include "absl/status/statusor.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/function_layouts.h"
#include "device/node_view.h"

namespace holdfast {

// All nodes of `graph`, in a topological order that keeps the order of recording where it can: two
// captures of the same work give the same order. Child graphs are flattened into their place; the
// bodies of a conditional node follow it, where the driver shows them. What the driver does not let
// us read becomes a kUnreadable node that says so; an error is a graph that
// cannot be walked at all, or a lost device. The graph must not be changed meanwhile.
absl::StatusOr<GraphView> ReadGraph(const CudaContext& context, FunctionLayouts& layouts,
                                    CUgraph graph);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_GRAPH_VIEW_H_
