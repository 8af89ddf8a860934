#include "device/host/host_gemm.h"

#include <algorithm>
#include <utility>

#include "device/error.h"
#include "device/host/row_block_gemm.h"

namespace holdfast {
namespace {

class HostGemmPlan final : public GemmPlan {
 public:
  explicit HostGemmPlan(GemmSpec spec) : GemmPlan(std::move(spec), /*workspace_bytes=*/0) {}
};

void RunGemm(const HostGemmParams& p) {
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    const MatrixB b{.data = p.b + batch * p.stride_b, .ld = p.ldb, .is_nk = p.b_is_nk != 0};
    for (std::int64_t row = 0; row < p.m; row += kRowBlock) {
      MultiplyRowBlock({.a = p.a + batch * p.stride_a + row * p.lda,
                        .d = p.d + batch * p.stride_d + row * p.ldd,
                        .rows = std::min(kRowBlock, p.m - row),
                        .lda = p.lda,
                        .ldd = p.ldd},
                       b, p.n, p.k, p.accumulate != 0);
    }
  }
}

}  // namespace

const Op& HostGemmOp() {
  static const Op op = MakeOp<HostGemmParams, RunGemm>("gemm", nullptr);
  return op;
}

HostGemmParams MakeHostGemmParams(const GemmSpec& spec, const GemmOperands& operands) {
  return {.a = operands.a.As<const float>(),
          .b = operands.b.As<const float>(),
          .d = operands.d.As<float>(),
          .workspace = operands.workspace.As<void>(),
          .m = spec.m,
          .n = spec.n,
          .k = spec.k,
          .lda = spec.lda,
          .ldb = spec.ldb,
          .ldd = spec.ldd,
          .batch = spec.batch,
          .stride_a = spec.stride_a,
          .stride_b = spec.stride_b,
          .stride_d = spec.stride_d,
          .b_is_nk = spec.b_is_nk,
          .accumulate = spec.accumulate};
}

absl::StatusOr<std::unique_ptr<GemmPlan>> PlanHostGemm(const GemmSpec& spec) {
  if (spec.in != DType::kF32 || spec.out != DType::kF32) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = spec.name},
                     "the host device multiplies f32 only");
  }
  return std::make_unique<HostGemmPlan>(spec);
}

}  // namespace holdfast
