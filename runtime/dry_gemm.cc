#include "runtime/dry_gemm.h"

#include <utility>

namespace holdfast {
namespace {

class DryGemmPlan final : public GemmPlan {
 public:
  explicit DryGemmPlan(GemmSpec spec) : GemmPlan(std::move(spec), /*workspace_bytes=*/0) {}
};

}  // namespace

std::unique_ptr<GemmPlan> EstimateGemm(const GemmSpec& spec) {
  return std::make_unique<DryGemmPlan>(spec);
}

}  // namespace holdfast
