#include "tools/layered_step.h"

#include <memory>
#include <string>
#include <utility>

#include "runtime/kernels/dense.h"

namespace holdfast {
namespace {

constexpr std::int64_t kExpand = 4;  // width of the inner half of a layer, in widths

// The products of a layer; the weights of all lie at one place.
struct Products {
  std::unique_ptr<GemmPlan> to_three, to_one, to_inner, from_inner;
};

absl::StatusOr<std::unique_ptr<GemmPlan>> Plan(Device& device, const std::string& name, DType type,
                                               std::int64_t rows, std::int64_t out, std::int64_t in,
                                               bool to_residual) {
  return device.PlanGemm({.name = name,
                          .m = rows,
                          .n = out,
                          .k = in,
                          .lda = in,
                          .ldb = in,
                          .ldd = out,
                          .in = type,
                          .out = to_residual ? DType::kF32 : type,
                          .accumulate = to_residual});
}

}  // namespace

std::uint64_t LayeredStep::WeightBytes(const LayeredShape& shape) {
  return static_cast<std::uint64_t>(shape.width * shape.width * kExpand) * DTypeBytes(shape.type);
}

std::uint64_t LayeredStep::StateBytes(const LayeredShape& shape) {
  return static_cast<std::uint64_t>(shape.most_rows * shape.width) * sizeof(float);
}

absl::StatusOr<Step> LayeredStep::Make(Device& device, std::int64_t rows) const {
  const std::int64_t width = shape_.width, inner = kExpand * width;
  const DType type = shape_.type;
  const auto p = std::make_shared<Products>();
  HOLDFAST_ASSIGN_OR_RETURN(p->to_three,
                            Plan(device, "to_three", type, rows, 3 * width, width, false));
  HOLDFAST_ASSIGN_OR_RETURN(p->to_one, Plan(device, "to_one", type, rows, width, width, true));
  HOLDFAST_ASSIGN_OR_RETURN(p->to_inner, Plan(device, "to_inner", type, rows, inner, width, false));
  HOLDFAST_ASSIGN_OR_RETURN(p->from_inner,
                            Plan(device, "from_inner", type, rows, width, inner, true));
  return Step([shape = shape_, weights = weights_, state = state_, rows, inner,
               p](StepContext& step) -> absl::Status {
    const DeviceAddress weight = step.Resolve(weights), residual = step.Resolve(state);
    const auto bytes = [&](std::int64_t columns) {
      return static_cast<std::uint64_t>(rows * columns) * DTypeBytes(shape.type);
    };
    const auto norm = [&](DeviceAddress out) {
      const RmsNormParams params{.in = residual.As<const float>(),
                                 .weight = weight.As<const void>(),
                                 .out = out.As<void>(),
                                 .row_index = nullptr,
                                 .in_stride = shape.width,
                                 .out_stride = shape.width,
                                 .rows = static_cast<std::int32_t>(rows),
                                 .width = static_cast<std::int32_t>(shape.width),
                                 .epsilon = 1e-5f};
      return step.Launch(RmsNormOp(shape.type), RmsNormShape(params), params);
    };
    const auto gate = [&](DeviceAddress a, DeviceAddress b, DeviceAddress out,
                          std::int64_t columns) {
      const SiluMulParams params{.gate = a.As<const void>(),
                                 .up = b.As<const void>(),
                                 .out = out.As<void>(),
                                 .count = rows * columns};
      return step.Launch(SiluMulOp(shape.type), SiluMulShape(params), params);
    };
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
      {
        HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer normed, step.Scratch("norm", bytes(shape.width)));
        HOLDFAST_RETURN_IF_ERROR(norm(normed.address()));
        HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer three,
                                  step.Scratch("three", bytes(3 * shape.width)));
        HOLDFAST_RETURN_IF_ERROR(
            step.Gemm(*p->to_three, normed.address(), weight, three.address()));
        normed.Release();
        HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer mixed, step.Scratch("mixed", bytes(shape.width)));
        HOLDFAST_RETURN_IF_ERROR(gate(three.address(), three.address() + bytes(shape.width),
                                      mixed.address(), shape.width));
        three.Release();
        HOLDFAST_RETURN_IF_ERROR(step.Gemm(*p->to_one, mixed.address(), weight, residual));
      }
      HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer normed, step.Scratch("norm", bytes(shape.width)));
      HOLDFAST_RETURN_IF_ERROR(norm(normed.address()));
      HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer a, step.Scratch("gate", bytes(inner)));
      HOLDFAST_RETURN_IF_ERROR(step.Gemm(*p->to_inner, normed.address(), weight, a.address()));
      HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer b, step.Scratch("up", bytes(inner)));
      HOLDFAST_RETURN_IF_ERROR(step.Gemm(*p->to_inner, normed.address(), weight, b.address()));
      normed.Release();
      HOLDFAST_RETURN_IF_ERROR(gate(a.address(), b.address(), a.address(), inner));
      b.Release();
      HOLDFAST_RETURN_IF_ERROR(step.Gemm(*p->from_inner, a.address(), weight, residual));
    }
    return absl::OkStatus();
  });
}

}  // namespace holdfast
