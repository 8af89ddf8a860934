#include "runtime/mla_pass.h"

#include "device/bytes.h"
#include "runtime/dry_gemm.h"
#include "runtime/kernels/dense.h"
#include "runtime/kernels/mla_prepare.h"

namespace holdfast {
namespace {

// A cuBLASLt algorithm may ask for this much (see device/cuda/gemm).
constexpr std::uint64_t kGemmWorkspaceBound = 32 * kMiB;

// The matrix products of a layer; every layer has the same shapes, so one set of plans serves all.
struct LayerGemms {
  std::unique_ptr<GemmPlan> q;         // hidden -> heads * (nope + rope); or q_a_norm -> the same
  std::unique_ptr<GemmPlan> q_a;       // hidden -> q_lora_rank; null if q is projected in one step
  std::unique_ptr<GemmPlan> kv_a;      // hidden -> latent + rope
  std::unique_ptr<GemmPlan> absorb;    // per head: nope -> latent
  std::unique_ptr<GemmPlan> unabsorb;  // per head: latent -> v
  std::unique_ptr<GemmPlan> o;         // heads * v -> hidden, added to the residual
  std::unique_ptr<GemmPlan> gate_up;   // hidden -> intermediate
  std::unique_ptr<GemmPlan> down;      // intermediate -> hidden, added to the residual
};

class MlaPass : public ModelPass {
 public:
  explicit MlaPass(const MlaPassSpec& spec) : spec_(spec), c_(*spec.config), type_(spec.type) {}

  absl::Status Plan(Device* device);
  absl::Status Enqueue(StepContext& step, const InputBlock& input, const OutputBlock& output,
                       SpanId cache) override;

 private:
  std::int64_t rows() const { return spec_.shape.rows; }
  std::int64_t qk() const { return c_.qk_nope + c_.qk_rope; }
  std::int64_t kv_width() const { return c_.kv_lora_rank + c_.qk_rope; }
  std::uint64_t size() const { return DTypeBytes(type_); }

  // A Linear layer's product: (m, k) x (n, k)^T -> (m, n).
  GemmSpec Linear(const char* name, std::int64_t m, std::int64_t n, std::int64_t k,
                  DType out) const;
  absl::StatusOr<ScratchBuffer> Rows(StepContext& step, const char* name, std::int64_t width,
                                     DType type);
  // out (rows, width) = rmsnorm of in (rows, in_stride).
  absl::Status Norm(StepContext& step, const float* in, std::int64_t width, std::int64_t in_stride,
                    SpanId weight, float epsilon, void* out);
  absl::Status Attention(StepContext& step, const InputBlock& input, SpanId cache,
                         std::int32_t layer, DeviceAddress residual);
  // The rotated, absorbed queries (rows, heads, latent + rope); writes this layer's keys to the
  // cache.
  absl::StatusOr<ScratchBuffer> Queries(StepContext& step, const InputBlock& input, SpanId cache,
                                        std::int32_t layer, DeviceAddress residual);
  absl::Status FeedForward(StepContext& step, const MlaLayerWeights& w, DeviceAddress residual);

  MlaPassSpec spec_;
  const MlaConfig& c_;
  DType type_;
  LayerGemms gemms_;
  std::unique_ptr<GemmPlan> head_;
};

GemmSpec MlaPass::Linear(const char* name, std::int64_t m, std::int64_t n, std::int64_t k,
                         DType out) const {
  return {.name = name,
          .m = m,
          .n = n,
          .k = k,
          .lda = k,
          .ldb = k,
          .ldd = n,
          .in = type_,
          .out = out,
          .deterministic = spec_.deterministic};
}

absl::Status MlaPass::Plan(Device* device) {
  const std::int64_t hidden = c_.hidden, heads = c_.heads, latent = c_.kv_lora_rank;
  const std::int64_t q_width = heads * qk();
  const std::int64_t head_rows = c_.qk_nope + c_.v_head;  // rows of kv_b a head has
  const auto plan = [device](std::unique_ptr<GemmPlan>& into,
                             const GemmSpec& spec) -> absl::Status {
    if (device == nullptr) {
      into = EstimateGemm(spec);
      return absl::OkStatus();
    }
    HOLDFAST_ASSIGN_OR_RETURN(into, device->PlanGemm(spec));
    return absl::OkStatus();
  };

  if (c_.q_lora_rank > 0) {
    HOLDFAST_RETURN_IF_ERROR(
        plan(gemms_.q_a, Linear("q_a", rows(), c_.q_lora_rank, hidden, DType::kF32)));
    HOLDFAST_RETURN_IF_ERROR(plan(gemms_.q, Linear("q_b", rows(), q_width, c_.q_lora_rank, type_)));
  } else {
    HOLDFAST_RETURN_IF_ERROR(plan(gemms_.q, Linear("q", rows(), q_width, hidden, type_)));
  }
  HOLDFAST_RETURN_IF_ERROR(
      plan(gemms_.kv_a, Linear("kv_a", rows(), kv_width(), hidden, DType::kF32)));

  // q_full[:, h, 0:latent] = q[:, h, 0:nope] * W_UK[h], with W_UK[h] (nope, latent) as stored.
  GemmSpec absorb = Linear("absorb", rows(), latent, c_.qk_nope, type_);
  absorb.lda = q_width, absorb.stride_a = qk();
  absorb.ldb = latent, absorb.stride_b = head_rows * latent, absorb.b_is_nk = false;
  absorb.ldd = heads * kv_width(), absorb.stride_d = kv_width();
  absorb.batch = heads;
  HOLDFAST_RETURN_IF_ERROR(plan(gemms_.absorb, absorb));

  // o[:, h, :] = out[:, h, :] * W_UV[h]^T, with W_UV[h] (v, latent) as stored.
  GemmSpec unabsorb = Linear("unabsorb", rows(), c_.v_head, latent, type_);
  unabsorb.lda = heads * latent, unabsorb.stride_a = latent;
  unabsorb.stride_b = head_rows * latent;
  unabsorb.ldd = heads * c_.v_head, unabsorb.stride_d = c_.v_head;
  unabsorb.batch = heads;
  HOLDFAST_RETURN_IF_ERROR(plan(gemms_.unabsorb, unabsorb));

  GemmSpec o = Linear("o", rows(), hidden, heads * c_.v_head, DType::kF32);
  GemmSpec down = Linear("down", rows(), hidden, c_.intermediate, DType::kF32);
  o.accumulate = down.accumulate = true;
  HOLDFAST_RETURN_IF_ERROR(plan(gemms_.o, o));
  HOLDFAST_RETURN_IF_ERROR(
      plan(gemms_.gate_up, Linear("gate_up", rows(), c_.intermediate, hidden, type_)));
  HOLDFAST_RETURN_IF_ERROR(plan(gemms_.down, down));
  return plan(head_, Linear("head", spec_.shape.sequences, c_.vocab, hidden, DType::kF32));
}

absl::StatusOr<ScratchBuffer> MlaPass::Rows(StepContext& step, const char* name, std::int64_t width,
                                            DType type) {
  return step.Scratch(name, static_cast<std::uint64_t>(rows() * width) * DTypeBytes(type));
}

absl::Status MlaPass::Norm(StepContext& step, const float* in, std::int64_t width,
                           std::int64_t in_stride, SpanId weight, float epsilon, void* out) {
  const RmsNormParams params{.in = in,
                             .weight = step.Resolve(weight).As<void>(),
                             .out = out,
                             .row_index = nullptr,
                             .in_stride = in_stride,
                             .out_stride = width,
                             .rows = spec_.shape.rows,
                             .width = static_cast<std::int32_t>(width),
                             .epsilon = epsilon};
  return step.Launch(RmsNormOp(type_), RmsNormShape(params), params);
}

absl::StatusOr<ScratchBuffer> MlaPass::Queries(StepContext& step, const InputBlock& input,
                                               SpanId cache, std::int32_t layer,
                                               DeviceAddress residual) {
  const MlaLayerWeights& w = spec_.weights->layers[static_cast<std::size_t>(layer)];
  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer x, Rows(step, "attention input", c_.hidden, type_));
  HOLDFAST_RETURN_IF_ERROR(Norm(step, residual.As<float>(), c_.hidden, c_.hidden, w.input_norm,
                                c_.rms_epsilon, x.As<void>()));

  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer q, Rows(step, "q", c_.heads * qk(), type_));
  if (c_.q_lora_rank > 0) {
    HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer low,
                              Rows(step, "q low rank", c_.q_lora_rank, DType::kF32));
    HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer normed,
                              Rows(step, "q low rank, normed", c_.q_lora_rank, type_));
    HOLDFAST_RETURN_IF_ERROR(
        step.Gemm(*gemms_.q_a, x.address(), step.Resolve(w.q_a), low.address()));
    HOLDFAST_RETURN_IF_ERROR(Norm(step, low.As<float>(), c_.q_lora_rank, c_.q_lora_rank, w.q_a_norm,
                                  c_.latent_rms_epsilon, normed.As<void>()));
    HOLDFAST_RETURN_IF_ERROR(
        step.Gemm(*gemms_.q, normed.address(), step.Resolve(w.q_b), q.address()));
  } else {
    HOLDFAST_RETURN_IF_ERROR(step.Gemm(*gemms_.q, x.address(), step.Resolve(w.q), q.address()));
  }
  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer kv, Rows(step, "kv", kv_width(), DType::kF32));
  HOLDFAST_RETURN_IF_ERROR(
      step.Gemm(*gemms_.kv_a, x.address(), step.Resolve(w.kv_a), kv.address()));

  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer q_full,
                            Rows(step, "q absorbed", c_.heads * kv_width(), type_));
  HOLDFAST_RETURN_IF_ERROR(
      step.Gemm(*gemms_.absorb, q.address(), step.Resolve(w.kv_b), q_full.address()));
  const MlaPrepareParams params{.kv = kv.As<float>(),
                                .weight = step.Resolve(w.kv_norm).As<void>(),
                                .q = q.As<void>(),
                                .q_full = q_full.As<void>(),
                                .cache = step.Resolve(cache).As<void>(),
                                .positions = input.positions,
                                .slots = input.slots,
                                .rope_table = step.Resolve(spec_.rope_table).As<float>(),
                                .page_stride = spec_.kv.page_stride(),
                                .layer_offset = layer * spec_.kv.layer_stride(),
                                .rows = spec_.shape.rows,
                                .heads = c_.heads,
                                .latent = c_.kv_lora_rank,
                                .nope = c_.qk_nope,
                                .rope = c_.qk_rope,
                                .page_tokens = spec_.kv.page_tokens,
                                .interleaved = c_.rope_interleaved ? 1 : 0,
                                .epsilon = c_.latent_rms_epsilon};
  HOLDFAST_RETURN_IF_ERROR(step.Launch(MlaPrepareOp(type_), MlaPrepareShape(params), params));
  return q_full;
}

absl::Status MlaPass::Attention(StepContext& step, const InputBlock& input, SpanId cache,
                                std::int32_t layer, DeviceAddress residual) {
  const MlaLayerWeights& w = spec_.weights->layers[static_cast<std::size_t>(layer)];
  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer q_full, Queries(step, input, cache, layer, residual));
  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer latent,
                            Rows(step, "attention latent", c_.heads * c_.kv_lora_rank, type_));
  HOLDFAST_RETURN_IF_ERROR(spec_.attention->Run(
      step, {.q = q_full.address(),
             .cache = step.Resolve(cache),
             .out = latent.address(),
             .lse = {},
             .block_table = {reinterpret_cast<std::uint64_t>(input.block_table)},
             .row_sequence = {reinterpret_cast<std::uint64_t>(input.row_sequence)},
             .row_kv_length = {reinterpret_cast<std::uint64_t>(input.row_kv_length)},
             .page_stride = spec_.kv.page_stride(),
             .layer_offset = layer * spec_.kv.layer_stride(),
             .rows = spec_.shape.rows,
             .table_stride = spec_.shape.table_stride}));
  q_full.Release();
  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer heads,
                            Rows(step, "attention heads", c_.heads * c_.v_head, type_));
  const std::uint64_t value_rows =
      static_cast<std::uint64_t>(c_.qk_nope) * static_cast<std::uint64_t>(c_.kv_lora_rank) * size();
  HOLDFAST_RETURN_IF_ERROR(step.Gemm(*gemms_.unabsorb, latent.address(),
                                     step.Resolve(w.kv_b) + value_rows, heads.address()));
  latent.Release();
  return step.Gemm(*gemms_.o, heads.address(), step.Resolve(w.o), residual);
}

absl::Status MlaPass::FeedForward(StepContext& step, const MlaLayerWeights& w,
                                  DeviceAddress residual) {
  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer x, Rows(step, "mlp input", c_.hidden, type_));
  HOLDFAST_RETURN_IF_ERROR(Norm(step, residual.As<float>(), c_.hidden, c_.hidden, w.mlp_norm,
                                c_.rms_epsilon, x.As<void>()));
  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer gate, Rows(step, "gate", c_.intermediate, type_));
  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer up, Rows(step, "up", c_.intermediate, type_));
  HOLDFAST_RETURN_IF_ERROR(
      step.Gemm(*gemms_.gate_up, x.address(), step.Resolve(w.gate), gate.address()));
  HOLDFAST_RETURN_IF_ERROR(
      step.Gemm(*gemms_.gate_up, x.address(), step.Resolve(w.up), up.address()));
  x.Release();
  const SiluMulParams params{.gate = gate.As<void>(),
                             .up = up.As<void>(),
                             .out = gate.As<void>(),
                             .count = rows() * c_.intermediate};
  HOLDFAST_RETURN_IF_ERROR(step.Launch(SiluMulOp(type_), SiluMulShape(params), params));
  up.Release();
  return step.Gemm(*gemms_.down, gate.address(), step.Resolve(w.down), residual);
}

absl::Status MlaPass::Enqueue(StepContext& step, const InputBlock& input, const OutputBlock& output,
                              SpanId cache) {
  HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer residual, Rows(step, "residual", c_.hidden, DType::kF32));
  const EmbedParams embed{.tokens = input.tokens,
                          .table = step.Resolve(spec_.weights->embed).As<void>(),
                          .out = residual.As<float>(),
                          .rows = spec_.shape.rows,
                          .width = c_.hidden,
                          .vocab = c_.vocab};
  HOLDFAST_RETURN_IF_ERROR(step.Launch(EmbedOp(type_), EmbedShape(embed), embed));
  for (std::int32_t layer = 0; layer < c_.layers; ++layer) {
    HOLDFAST_RETURN_IF_ERROR(Attention(step, input, cache, layer, residual.address()));
    HOLDFAST_RETURN_IF_ERROR(FeedForward(
        step, spec_.weights->layers[static_cast<std::size_t>(layer)], residual.address()));
  }
  // Only the rows whose logits are wanted go through the head.
  HOLDFAST_ASSIGN_OR_RETURN(
      ScratchBuffer last,
      step.Scratch("last hidden", static_cast<std::uint64_t>(spec_.shape.sequences) *
                                      static_cast<std::uint64_t>(c_.hidden) * size()));
  const RmsNormParams norm{.in = residual.As<float>(),
                           .weight = step.Resolve(spec_.weights->norm).As<void>(),
                           .out = last.As<void>(),
                           .row_index = input.logits_row,
                           .in_stride = c_.hidden,
                           .out_stride = c_.hidden,
                           .rows = spec_.shape.sequences,
                           .width = c_.hidden,
                           .epsilon = c_.rms_epsilon};
  HOLDFAST_RETURN_IF_ERROR(step.Launch(RmsNormOp(type_), RmsNormShape(norm), norm));
  return step.Gemm(*head_, last.address(), step.Resolve(spec_.weights->head),
                   {reinterpret_cast<std::uint64_t>(output.logits)});
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelPass>> PlanMlaPass(Device* device, const MlaPassSpec& spec) {
  auto pass = std::make_unique<MlaPass>(spec);
  HOLDFAST_RETURN_IF_ERROR(pass->Plan(device));
  return pass;
}

std::uint64_t MlaScratchBound(const MlaConfig& c, DType type, const BatchShape& shape) {
  const std::uint64_t size = DTypeBytes(type);
  const auto rows = static_cast<std::uint64_t>(shape.rows);
  const auto hidden = static_cast<std::uint64_t>(c.hidden);
  const std::uint64_t qk = static_cast<std::uint64_t>(c.qk_nope + c.qk_rope);
  const std::uint64_t kv = static_cast<std::uint64_t>(c.kv_lora_rank + c.qk_rope);
  const auto heads = static_cast<std::uint64_t>(c.heads);
  const std::uint64_t elements = hidden * 4 +
                                 heads * (qk + 2 * kv + static_cast<std::uint64_t>(c.v_head)) +
                                 static_cast<std::uint64_t>(c.q_lora_rank) * 3 + kv * 2 +
                                 static_cast<std::uint64_t>(c.intermediate) * 2;
  const std::uint64_t buffers = 24;  // rounding of each
  return rows * elements * size + rows * hidden * 4 +
         static_cast<std::uint64_t>(shape.sequences) * hidden * size + buffers * kScratchAlignment +
         kGemmWorkspaceBound;
}

}  // namespace holdfast
