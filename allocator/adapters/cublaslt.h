// cuBLASLt's workspace from a step's scratch, for products a step runs by a handle of its own (the
// device's Gemm does this by itself).
//
//   WithLtWorkspace(step, "attention", kLtWorkspaceBytes,
//                   [&](void* workspace, std::size_t bytes, cudaStream_t stream) {
//     return cublasLtMatmul(handle, ..., workspace, bytes, stream);
//   });
//
// A workspace that cuBLAS takes for itself is keyed by stream and thread and dies before the graph.
#ifndef HOLDFAST_ALLOCATOR_ADAPTERS_CUBLASLT_H_
#define HOLDFAST_ALLOCATOR_ADAPTERS_CUBLASLT_H_

#include <cstddef>
#include <string>
#include <utility>

#include "allocator/adapters/library_call.h"
#include "device/bytes.h"

namespace holdfast {

// What cuBLAS recommends for Hopper and newer; the heuristic is given the same limit.
inline constexpr std::size_t kLtWorkspaceBytes = 32 * kMiB;

// `call` as above; the workspace lives for the length of it. `bytes` may be 0.
template <typename Call>
absl::Status WithLtWorkspace(StepContext& step, const std::string& name, std::size_t bytes,
                             Call&& call) {
  HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer workspace,
                            step.Scratch("cublasLt workspace of " + name, bytes));
  return step.Enqueue(name, [&] {
    void* const at = bytes == 0 ? nullptr : workspace.As<void>();
    return LibraryStatus(call(at, bytes, NativeStream(step)), name, "cublasLtMatmul");
  });
}

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_ADAPTERS_CUBLASLT_H_
