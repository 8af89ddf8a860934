#include "device/cuda/kernel_nodes.h"

#include <optional>
#include <vector>

#include "device/cuda/cuda_error.h"

namespace holdfast {
namespace {

std::optional<CUDA_KERNEL_NODE_PARAMS> KernelOf(const DriverTable& driver, CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUDA_KERNEL_NODE_PARAMS params = {};
  if (driver.GraphNodeGetType(node, &type) != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_KERNEL ||
      driver.GraphKernelNodeGetParams(node, &params) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  return params;
}

absl::Status Load(const DriverTable& driver, const CUDA_KERNEL_NODE_PARAMS& kernel) {
  CUfunction function = kernel.func;
  // Asking a kernel for its function loads it.
  if (function == nullptr && (kernel.kern == nullptr ||
                              driver.KernelGetFunction(&function, kernel.kern) != CUDA_SUCCESS)) {
    return absl::OkStatus();
  }
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  if (driver.FuncIsLoaded(&state, function) == CUDA_SUCCESS &&
      state == CU_FUNCTION_LOADING_STATE_LOADED) {
    return absl::OkStatus();
  }
  return ToStatus(driver.FuncLoad(function), "cuFuncLoad", {.object = "graph"});
}

}  // namespace

absl::Status LoadKernels(const DriverTable& driver, CUgraph graph) {
  std::size_t count = 0;
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(driver.GraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes"));
  std::vector<CUgraphNode> nodes(count);
  if (count == 0) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(driver.GraphGetNodes(graph, nodes.data(), &count), "cuGraphGetNodes"));
  for (const CUgraphNode node : nodes) {
    if (const auto kernel = KernelOf(driver, node); kernel.has_value()) {
      HOLDFAST_RETURN_IF_ERROR(Load(driver, *kernel));
      continue;
    }
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUgraph child = nullptr;
    if (driver.GraphNodeGetType(node, &type) == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_GRAPH &&
        driver.GraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS) {
      HOLDFAST_RETURN_IF_ERROR(LoadKernels(driver, child));
    }
  }
  return absl::OkStatus();
}

std::string NodeText(const DriverTable& driver, CUgraphNode node) {
  const auto kernel = KernelOf(driver, node);
  if (!kernel.has_value()) return "node";
  const char* name = nullptr;
  const CUresult code = kernel->func != nullptr ? driver.FuncGetName(&name, kernel->func)
                                                : driver.KernelGetName(&name, kernel->kern);
  return code == CUDA_SUCCESS && name != nullptr ? std::string("kernel ") + name : "kernel";
}

}  // namespace holdfast
