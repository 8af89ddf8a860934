#include "device/cuda/gemm_problem.h"

#include <utility>

#include "device/cuda/cuda_error.h"

namespace holdfast {
namespace {

constexpr std::uint32_t kLargestAlignment = 16;

cudaDataType_t DataType(DType type) { return type == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

// The largest power of two, at most 16, that divides the distance between rows and between batches.
std::uint32_t RowAlignment(DType type, std::int64_t ld, std::int64_t batch, std::int64_t stride) {
  const std::uint64_t element = DTypeBytes(type);
  const std::uint64_t steps = (static_cast<std::uint64_t>(ld) * element) |
                              (batch > 1 ? static_cast<std::uint64_t>(stride) * element : 0);
  std::uint32_t alignment = kLargestAlignment;
  while (steps % alignment != 0) alignment /= 2;
  return alignment;
}

template <typename T>
absl::Status SetPreference(const CublasLtTable& lt, cublasLtMatmulPreference_t preference,
                           cublasLtMatmulPreferenceAttributes_t attribute, T value,
                           const CallContext& context) {
  return ToStatus(lt.MatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
                  "cublasLtMatmulPreferenceSetAttribute", context);
}

template <typename T>
absl::Status SetLayout(const CublasLtTable& lt, cublasLtMatrixLayout_t layout,
                       cublasLtMatrixLayoutAttribute_t attribute, T value,
                       const CallContext& context) {
  return ToStatus(lt.MatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)),
                  "cublasLtMatrixLayoutSetAttribute", context);
}

}  // namespace

GemmAlignment GemmAlignment::Of(const GemmSpec& spec) {
  return {.a = RowAlignment(spec.in, spec.lda, spec.batch, spec.stride_a),
          .b = RowAlignment(spec.in, spec.ldb, spec.batch, spec.stride_b),
          .d = RowAlignment(spec.out, spec.ldd, spec.batch, spec.stride_d)};
}

GemmProblem::GemmProblem(const CublasLtTable& lt, const GemmSpec& spec)
    : lt_(&lt),
      spec_(spec),
      operation_(nullptr, lt.MatmulDescDestroy),
      left_(nullptr, lt.MatrixLayoutDestroy),
      right_(nullptr, lt.MatrixLayoutDestroy),
      out_(nullptr, lt.MatrixLayoutDestroy) {}

absl::StatusOr<GemmProblem> GemmProblem::Describe(const CublasLtTable& lt, const GemmSpec& spec) {
  GemmProblem problem(lt, spec);
  const CallContext context{.object = spec.name};
  // Products and sums in f32 for both input types; COMPUTE_32F never rounds f32 inputs to TF32.
  cublasLtMatmulDesc_t operation = nullptr;
  HOLDFAST_RETURN_IF_ERROR(ToStatus(lt.MatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                                    "cublasLtMatmulDescCreate", context));
  problem.operation_.reset(operation);
  // int32_t in the library's words.
  const std::int32_t left_transposed = spec.b_is_nk ? CUBLAS_OP_T : CUBLAS_OP_N;
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(lt.MatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &left_transposed,
                                         sizeof(left_transposed)),
               "cublasLtMatmulDescSetAttribute", context));
  const std::int64_t left_rows = spec.b_is_nk ? spec.k : spec.n;
  const std::int64_t left_columns = spec.b_is_nk ? spec.n : spec.k;
  HOLDFAST_RETURN_IF_ERROR(
      problem.AddLayout(problem.left_, spec.in, left_rows, left_columns, spec.ldb, spec.stride_b));
  HOLDFAST_RETURN_IF_ERROR(
      problem.AddLayout(problem.right_, spec.in, spec.k, spec.m, spec.lda, spec.stride_a));
  HOLDFAST_RETURN_IF_ERROR(
      problem.AddLayout(problem.out_, spec.out, spec.n, spec.m, spec.ldd, spec.stride_d));
  return problem;
}

absl::Status GemmProblem::AddLayout(Owned<cublasLtMatrixLayout_t>& layout, DType type,
                                    std::int64_t rows, std::int64_t columns, std::int64_t ld,
                                    std::int64_t stride) {
  const CallContext context{.object = spec_.name};
  cublasLtMatrixLayout_t created = nullptr;
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(lt_->MatrixLayoutCreate(&created, DataType(type), static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), ld),
               "cublasLtMatrixLayoutCreate", context));
  layout.reset(created);
  if (spec_.batch == 1) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(SetLayout(*lt_, created, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                     static_cast<std::int32_t>(spec_.batch), context));
  return SetLayout(*lt_, created, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride, context);
}

absl::StatusOr<std::vector<cublasLtMatmulHeuristicResult_t>> GemmProblem::Algorithms(
    cublasLtHandle_t handle, const Search& search) const {
  const CallContext context{.object = spec_.name};
  cublasLtMatmulPreference_t created = nullptr;
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(lt_->MatmulPreferenceCreate(&created), "cublasLtMatmulPreferenceCreate", context));
  const Owned<cublasLtMatmulPreference_t> preference(created, lt_->MatmulPreferenceDestroy);
  const GemmAlignment& alignment = search.alignment;
  const std::uint32_t reductions =
      search.allow_split ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_NONE;
  HOLDFAST_RETURN_IF_ERROR(SetPreference(*lt_, created, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         search.workspace_bytes, context));
  HOLDFAST_RETURN_IF_ERROR(SetPreference(*lt_, created, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                         reductions, context));
  // cuBLASLt's A is `left`, our B; its B is `right`, our A; its C and D are our D.
  HOLDFAST_RETURN_IF_ERROR(SetPreference(*lt_, created, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                         alignment.b, context));
  HOLDFAST_RETURN_IF_ERROR(SetPreference(*lt_, created, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                         alignment.a, context));
  HOLDFAST_RETURN_IF_ERROR(SetPreference(*lt_, created, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                         alignment.d, context));
  HOLDFAST_RETURN_IF_ERROR(SetPreference(*lt_, created, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                                         alignment.d, context));

  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(search.count));
  int found = 0;
  const cublasStatus_t code =
      lt_->MatmulAlgoGetHeuristic(handle, operation_.get(), left_.get(), right_.get(), out_.get(),
                                  out_.get(), created, search.count, results.data(), &found);
  if (code == CUBLAS_STATUS_NOT_SUPPORTED) found = 0;
  if (code != CUBLAS_STATUS_NOT_SUPPORTED) {
    HOLDFAST_RETURN_IF_ERROR(ToStatus(code, "cublasLtMatmulAlgoGetHeuristic", context));
  }
  results.resize(static_cast<std::size_t>(found));
  std::erase_if(results, [](const cublasLtMatmulHeuristicResult_t& result) {
    return result.state != CUBLAS_STATUS_SUCCESS;
  });
  return results;
}

absl::StatusOr<std::uint64_t> GemmProblem::Check(cublasLtHandle_t handle,
                                                 const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t result = {};
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(lt_->MatmulAlgoCheck(handle, operation_.get(), left_.get(), right_.get(), out_.get(),
                                    out_.get(), &algorithm, &result),
               "cublasLtMatmulAlgoCheck", {.object = spec_.name}));
  return result.workspaceSize;
}

absl::Status GemmProblem::Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                              const GemmOperands& operands, std::uint64_t workspace_bytes,
                              cudaStream_t stream) const {
  // Read before the call returns; captured by value.
  const float alpha = 1.0f;
  const float beta = spec_.accumulate ? 1.0f : 0.0f;
  void* const d = operands.d.As<void>();
  return ToStatus(
      lt_->Matmul(handle, operation_.get(), &alpha, operands.b.As<const void>(), left_.get(),
                  operands.a.As<const void>(), right_.get(), &beta, d, out_.get(), d, out_.get(),
                  &algorithm, workspace_bytes != 0 ? operands.workspace.As<void>() : nullptr,
                  workspace_bytes, stream),
      "cublasLtMatmul", {.object = spec_.name});
}

}  // namespace holdfast
