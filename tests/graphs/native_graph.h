// The handle by which a program that knows nothing of us would pass a captured graph.
#ifndef HOLDFAST_TESTS_GRAPHS_NATIVE_GRAPH_H_
#define HOLDFAST_TESTS_GRAPHS_NATIVE_GRAPH_H_

#include "device/device.h"

#if HOLDFAST_WITH_CUDA
#include "device/cuda/cuda_graph.h"
#endif

namespace holdfast {

inline void* NativeGraph(CapturedGraph& graph) {
#if HOLDFAST_WITH_CUDA
  if (const auto* cuda = dynamic_cast<CudaCapturedGraph*>(&graph)) return cuda->get();
#endif
  return &graph;
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_GRAPHS_NATIVE_GRAPH_H_
