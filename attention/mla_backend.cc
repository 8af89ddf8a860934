#include "attention/mla_backend.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "attention/check_field.h"
#include "attention/declare/mla_dense.h"
#include "attention/kernels/mla_attention_tile.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kVectorBytes = 16;  // the kernels read and write whole vectors
constexpr std::int64_t kVectorElements = 8;

constexpr char kOwner[] = "mla_attention";

absl::Status Refuse(const std::string& argument, const std::string& value,
                    const std::string& limit) {
  return RefuseField(kOwner, argument, value, limit);
}

absl::Status CheckRange(const std::string& argument, std::int64_t value, std::int64_t least,
                        std::int64_t most) {
  return CheckField(kOwner, argument, value, least, most);
}

absl::Status CheckMultiple(const std::string& argument, std::int64_t value) {
  if (value % kVectorElements == 0) return absl::OkStatus();
  return Refuse(argument, absl::StrFormat("%d", value),
                absl::StrFormat("a multiple of %d", kVectorElements));
}

absl::Status CheckAddress(const std::string& argument, DeviceAddress address,
                          std::uint64_t alignment) {
  if (address.value != 0 && address.value % alignment == 0) return absl::OkStatus();
  return Refuse(argument, absl::StrFormat("0x%x", address.value),
                absl::StrFormat("non-null and aligned to %d bytes", alignment));
}

absl::Status CheckCall(const MlaBackendConfig& config, const MlaBackend::Call& call) {
  const std::int64_t layer_elements =
      std::int64_t{config.page_tokens} * (config.latent + config.rope);
  HOLDFAST_RETURN_IF_ERROR(CheckRange("rows", call.rows, 1, INT32_MAX));
  HOLDFAST_RETURN_IF_ERROR(CheckRange("table_stride", call.table_stride, 1, INT32_MAX));
  HOLDFAST_RETURN_IF_ERROR(
      CheckRange("layer_offset", call.layer_offset, 0, INT64_MAX - layer_elements));
  HOLDFAST_RETURN_IF_ERROR(CheckMultiple("layer_offset", call.layer_offset));
  HOLDFAST_RETURN_IF_ERROR(
      CheckRange("page_stride", call.page_stride, call.layer_offset + layer_elements, INT64_MAX));
  HOLDFAST_RETURN_IF_ERROR(CheckMultiple("page_stride", call.page_stride));
  HOLDFAST_RETURN_IF_ERROR(CheckAddress("q", call.q, kVectorBytes));
  HOLDFAST_RETURN_IF_ERROR(CheckAddress("cache", call.cache, kVectorBytes));
  HOLDFAST_RETURN_IF_ERROR(CheckAddress("out", call.out, kVectorBytes));
  HOLDFAST_RETURN_IF_ERROR(CheckAddress("block_table", call.block_table, sizeof(std::int32_t)));
  HOLDFAST_RETURN_IF_ERROR(CheckAddress("row_sequence", call.row_sequence, sizeof(std::int32_t)));
  HOLDFAST_RETURN_IF_ERROR(CheckAddress("row_kv_length", call.row_kv_length, sizeof(std::int32_t)));
  if (call.lse) HOLDFAST_RETURN_IF_ERROR(CheckAddress("lse", call.lse, sizeof(float)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MlaBackend> MlaBackend::Create(const MlaBackendConfig& config) {
  HOLDFAST_RETURN_IF_ERROR(CheckRange("heads", config.heads, 1, kMlaMaxHeads));
  HOLDFAST_RETURN_IF_ERROR(CheckRange("latent", config.latent, kVectorElements, kMlaMaxLatent));
  HOLDFAST_RETURN_IF_ERROR(CheckMultiple("latent", config.latent));
  HOLDFAST_RETURN_IF_ERROR(CheckRange("rope", config.rope, 0, kMlaMaxRope));
  HOLDFAST_RETURN_IF_ERROR(CheckMultiple("rope", config.rope));
  HOLDFAST_RETURN_IF_ERROR(CheckRange("page_tokens", config.page_tokens, 1, INT32_MAX));
  if (!std::isfinite(config.scale) || config.scale <= 0) {
    return Refuse("scale", absl::StrFormat("%g", config.scale), "finite and above 0");
  }
  if (config.type != DType::kF32 && config.type != DType::kBF16) {
    return Refuse("type", DTypeName(config.type), "f32 or bf16");
  }
  return MlaBackend(config);
}

absl::StatusOr<AttentionDeclaration> MlaBackend::Declare(AttentionConfig limits) const {
  limits.heads = config_.heads;
  limits.latent = config_.latent;
  limits.rope = config_.rope;
  limits.page_tokens = config_.page_tokens;
  limits.type = config_.type;
  limits.quantized = false;
  limits.split_parts = 1;  // the plain kernel reads a row's keys in one pass
  return DeclareMlaDense(limits);
}

absl::Status MlaBackend::Run(StepContext& step, const Call& call) const {
  HOLDFAST_RETURN_IF_ERROR(CheckCall(config_, call));
  const MlaAttentionParams params{.q = call.q.As<const void>(),
                                  .cache = call.cache.As<const void>(),
                                  .out = call.out.As<void>(),
                                  .lse = call.lse.As<float>(),
                                  .block_table = call.block_table.As<const std::int32_t>(),
                                  .row_sequence = call.row_sequence.As<const std::int32_t>(),
                                  .row_kv_length = call.row_kv_length.As<const std::int32_t>(),
                                  .page_stride = call.page_stride,
                                  .layer_offset = call.layer_offset,
                                  .rows = call.rows,
                                  .heads = config_.heads,
                                  .latent = config_.latent,
                                  .rope = config_.rope,
                                  .page_tokens = config_.page_tokens,
                                  .table_stride = call.table_stride,
                                  .scale = config_.scale};
  return step.Launch(MlaAttentionOp(config_.type), MlaAttentionShape(params, config_.type), params);
}

}  // namespace holdfast
