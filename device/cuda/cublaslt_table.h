// cuBLASLt, opened when the first matrix product is planned: nothing of it is linked.
#ifndef HOLDFAST_DEVICE_CUDA_CUBLASLT_TABLE_H_
#define HOLDFAST_DEVICE_CUDA_CUBLASLT_TABLE_H_

#include <cublasLt.h>

#include "absl/status/statusor.h"

namespace holdfast {

#define HOLDFAST_CUBLASLT_FUNCTIONS(X) \
  X(Create)                            \
  X(Destroy)                           \
  X(MatmulDescCreate)                  \
  X(MatmulDescDestroy)                 \
  X(MatmulDescSetAttribute)            \
  X(MatrixLayoutCreate)                \
  X(MatrixLayoutDestroy)               \
  X(MatrixLayoutSetAttribute)          \
  X(MatmulPreferenceCreate)            \
  X(MatmulPreferenceDestroy)           \
  X(MatmulPreferenceSetAttribute)      \
  X(MatmulAlgoGetHeuristic)            \
  X(MatmulAlgoConfigGetAttribute)      \
  X(MatmulAlgoCheck)                   \
  X(Matmul)

struct CublasLtTable {
#define HOLDFAST_CUBLASLT_MEMBER(name) decltype(&cublasLt##name) name = nullptr;
  HOLDFAST_CUBLASLT_FUNCTIONS(HOLDFAST_CUBLASLT_MEMBER)
#undef HOLDFAST_CUBLASLT_MEMBER
};

// Loads the file named by the environment variable HOLDFAST_CUBLASLT if it is set, else
// libcublasLt.so.13, else libcublasLt.so.12, from where the loader looks. Loaded on the first call
// and kept; later calls return the same result. Thread-safe. kNotFound, naming what was tried.
absl::StatusOr<const CublasLtTable*> LoadCublasLt();

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_CUBLASLT_TABLE_H_
