// Matrix products on the GPU: chooses an algorithm for a product, and runs it.
#ifndef HOLDFAST_DEVICE_CUDA_GEMM_H_
#define HOLDFAST_DEVICE_CUDA_GEMM_H_

#include <cublasLt.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cublaslt_table.h"
#include "device/cuda/gemm_problem.h"
#include "device/gemm.h"

namespace holdfast {

// Thread-safe. The context is current in every calling thread, and at destruction.
class GemmLibrary {
 public:
  GemmLibrary() = default;
  ~GemmLibrary();
  GemmLibrary(const GemmLibrary&) = delete;
  GemmLibrary& operator=(const GemmLibrary&) = delete;

  // `spec` has been checked. Loads cuBLASLt on the first call; kNotFound without it, kUnsupported
  // if it has no algorithm for the product.
  absl::StatusOr<std::unique_ptr<GemmPlan>> Plan(const GemmSpec& spec);
  // `plan` is one of ours.
  absl::Status Run(const GemmPlan& plan, const GemmOperands& operands, cudaStream_t stream) const;

 private:
  // Loads the library and makes the handle if that has not been done. mutex_ is held.
  absl::Status Start();
  // The algorithm of this weight, chosen on first use. mutex_ is held.
  absl::StatusOr<cublasLtMatmulAlgo_t> Pinned(const GemmSpec& spec);

  std::mutex mutex_;
  // Set once under mutex_, before any plan exists.
  const CublasLtTable* lt_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  std::map<std::string, cublasLtMatmulAlgo_t> pinned_;  // guarded by mutex_
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_GEMM_H_
