// A captured CUDA graph (the template) and an executable one.
#ifndef HOLDFAST_DEVICE_CUDA_CUDA_GRAPH_H_
#define HOLDFAST_DEVICE_CUDA_CUDA_GRAPH_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/statusor.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/function_layouts.h"
#include "device/cuda/streams.h"
#include "device/device.h"

namespace holdfast {

// Owns the graph, unless it was adopted. Context and layouts (the device's) outlive it.
class CudaCapturedGraph final : public CapturedGraph {
 public:
  CudaCapturedGraph(const CudaContext* context, FunctionLayouts* layouts, cudaGraph_t graph,
                    bool owned = true)
      : context_(context), layouts_(layouts), graph_(graph), owned_(owned) {}
  ~CudaCapturedGraph() override;

  absl::StatusOr<GraphView> View() const override;
  cudaGraph_t get() const { return graph_; }
  void* native() override { return graph_; }

 private:
  const CudaContext* context_;
  FunctionLayouts* layouts_;
  cudaGraph_t graph_;
  bool owned_;
};

// Owns the executable. Must live until its launches have run.
class CudaExecutableGraph final : public ExecutableGraph {
 public:
  // Loads its kernels' code, instantiates and uploads, waiting for the upload on `upload_stream`
  // (idle, not capturing).
  static absl::StatusOr<std::unique_ptr<CudaExecutableGraph>> Create(const CudaContext* context,
                                                                     cudaGraph_t graph,
                                                                     CudaStream& upload_stream);
  ~CudaExecutableGraph() override;

  cudaGraphExec_t get() const { return executable_; }

 private:
  CudaExecutableGraph(const CudaContext* context, cudaGraphExec_t executable)
      : context_(context), executable_(executable) {}

  const CudaContext* context_;
  cudaGraphExec_t executable_;
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_CUDA_GRAPH_H_
