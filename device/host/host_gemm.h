// Matrix products of the host device: an Op like any other, so that a captured product is readable.
#ifndef HOLDFAST_DEVICE_HOST_HOST_GEMM_H_
#define HOLDFAST_DEVICE_HOST_HOST_GEMM_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "device/gemm.h"
#include "device/op.h"

namespace holdfast {

// See GemmSpec for shapes.
struct HostGemmParams {
  const float* a;  // (batch, m, k)
  const float* b;  // (batch, n, k) or (batch, k, n)
  float* d;        // (batch, m, n)
  void* workspace;
  std::int64_t m, n, k;
  std::int64_t lda, ldb, ldd;
  std::int64_t batch, stride_a, stride_b, stride_d;
  std::uint32_t b_is_nk, accumulate;
};

const Op& HostGemmOp();
HostGemmParams MakeHostGemmParams(const GemmSpec& spec, const GemmOperands& operands);

// kUnsupported unless the operands are f32. Needs no workspace.
absl::StatusOr<std::unique_ptr<GemmPlan>> PlanHostGemm(const GemmSpec& spec);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_HOST_GEMM_H_
