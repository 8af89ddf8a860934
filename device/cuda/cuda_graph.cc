#include "device/cuda/cuda_graph.h"

#include <chrono>

#include "device/cuda/graph_view.h"
#include "device/cuda/kernel_nodes.h"

namespace holdfast {

CudaCapturedGraph::~CudaCapturedGraph() {
  if (owned_ && context_->MakeCurrent().ok()) static_cast<void>(cudaGraphDestroy(graph_));
}

absl::StatusOr<GraphView> CudaCapturedGraph::View() const {
  HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
  return ReadGraph(*context_, *layouts_, graph_);
}

absl::StatusOr<std::unique_ptr<CudaExecutableGraph>> CudaExecutableGraph::Create(
    const CudaContext* context, cudaGraph_t graph, CudaStream& upload_stream) {
  const RelaxedCaptureScope relaxed;
  HOLDFAST_RETURN_IF_ERROR(LoadKernels(context->driver(), graph));
  const auto begun = std::chrono::steady_clock::now();
  cudaGraphExec_t executable = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&executable, graph, /*flags=*/0);
  if (code != cudaSuccess) {
    const std::uint64_t free = code == cudaErrorMemoryAllocation ? context->FreeBytes() : 0;
    return ToStatus(code, "cudaGraphInstantiate", {.object = "graph", .have = free});
  }
  std::unique_ptr<CudaExecutableGraph> result(new CudaExecutableGraph(context, executable));
  const auto instantiated = std::chrono::steady_clock::now();
  HOLDFAST_RETURN_IF_ERROR(ToStatus(cudaGraphUpload(executable, upload_stream.get()),
                                    "cudaGraphUpload", {.object = "graph"}));
  HOLDFAST_RETURN_IF_ERROR(upload_stream.WaitUntil(std::chrono::steady_clock::time_point::max()));
  const auto uploaded = std::chrono::steady_clock::now();
  result->times_ = {.instantiate = std::chrono::duration<double>(instantiated - begun).count(),
                    .upload = std::chrono::duration<double>(uploaded - instantiated).count()};
  return result;
}

CudaExecutableGraph::~CudaExecutableGraph() {
  if (context_->MakeCurrent().ok()) static_cast<void>(cudaGraphExecDestroy(executable_));
}

}  // namespace holdfast
