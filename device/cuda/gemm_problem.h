// A matrix product described to cuBLASLt.
//
// cuBLASLt thinks in column-major matrices; a row-major (r, c) matrix is the column-major (c, r)
// matrix of the same bytes, its transpose. So instead of D = A * op(B) we describe what those bytes
// are,
//
//   D^T (n, m) = op(B)^T (n, k) * A^T (k, m)
//
//   left  = op(B)^T, n x k. Our B (n, k) is a column-major (k, n) matrix: taken transposed.
//                    Our B (k, n) is a column-major (n, k) matrix: taken as it is.
//   right = A^T, k x m. Our A (m, k) is a column-major (k, m) matrix: taken as it is.
//   out   = D^T, n x m. Our D (m, n) is a column-major (n, m) matrix.
//
// and leading dimensions stay what they are. The rows of A are the columns of `right` and `out`.
#ifndef HOLDFAST_DEVICE_CUDA_GEMM_PROBLEM_H_
#define HOLDFAST_DEVICE_CUDA_GEMM_PROBLEM_H_

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "device/cuda/cublaslt_table.h"
#include "device/gemm.h"

namespace holdfast {

// Alignment in bytes every row of every batch of each matrix has, when its first byte is aligned to
// 16: a power of two, at most 16. Operands are interior pointers often enough (a head inside a
// row), so more than 16 is never assumed.
struct GemmAlignment {
  std::uint32_t a = 16, b = 16, d = 16;
  static GemmAlignment Of(const GemmSpec& spec);
};

// Immutable; usable from any thread.
class GemmProblem {
 public:
  static absl::StatusOr<GemmProblem> Describe(const CublasLtTable& lt, const GemmSpec& spec);

  struct Search {
    GemmAlignment alignment;            // what the algorithms may count on
    std::uint64_t workspace_bytes = 0;  // at most
    bool allow_split = false;           // may several blocks share the k dimension of one output
    int count = 1;                      // at most
  };
  // Algorithms cuBLASLt would use, best first. Empty if it knows none.
  absl::StatusOr<std::vector<cublasLtMatmulHeuristicResult_t>> Algorithms(
      cublasLtHandle_t handle, const Search& search) const;

  // The workspace `algorithm` needs for this problem; kUnsupported if it cannot run it.
  absl::StatusOr<std::uint64_t> Check(cublasLtHandle_t handle,
                                      const cublasLtMatmulAlgo_t& algorithm) const;

  absl::Status Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                   const GemmOperands& operands, std::uint64_t workspace_bytes,
                   cudaStream_t stream) const;

 private:
  template <typename Handle>
  using Owned =
      std::unique_ptr<std::remove_pointer_t<Handle>, cublasStatus_t(CUBLASWINAPI*)(Handle)>;

  GemmProblem(const CublasLtTable& lt, const GemmSpec& spec);

  // `rows` x `columns`, column-major; strides in elements.
  absl::Status AddLayout(Owned<cublasLtMatrixLayout_t>& layout, DType type, std::int64_t rows,
                         std::int64_t columns, std::int64_t ld, std::int64_t stride);

  const CublasLtTable* lt_;
  GemmSpec spec_;
  Owned<cublasLtMatmulDesc_t> operation_;
  Owned<cublasLtMatrixLayout_t> left_, right_, out_;
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_GEMM_PROBLEM_H_
