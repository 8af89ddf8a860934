#include "runtime/mla_model.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "runtime/mla_pass.h"
#include "runtime/text_file.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kMaxConfigBytes = kMiB;

// (max_position, rope): cosines, then sines, of position * theta^(-2i / rope). Angles are formed in
// float, as the Hugging Face model does, so that both see the same rounding.
void FillRopeTable(const MlaConfig& config, float* table) {
  const int half = config.qk_rope / 2;
  for (int position = 0; position < config.max_position; ++position) {
    float* row = table + static_cast<std::int64_t>(position) * config.qk_rope;
    for (int i = 0; i < half; ++i) {
      const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.qk_rope);
      const float frequency = 1.0f / std::pow(static_cast<float>(config.rope_theta), exponent);
      const float angle = static_cast<float>(position) * frequency;
      row[i] = std::cos(angle);
      row[half + i] = std::sin(angle);
    }
  }
}

std::uint64_t RopeTableBytes(const MlaConfig& config) {
  return static_cast<std::uint64_t>(config.max_position) *
         static_cast<std::uint64_t>(config.qk_rope) * sizeof(float);
}

}  // namespace

MlaModel::MlaModel(MlaConfig config, DType type, Checkpoint checkpoint, MlaBackend attention)
    : config_(config),
      type_(type),
      checkpoint_(std::move(checkpoint)),
      attention_(std::move(attention)),
      limits_{.vocab = config.vocab, .max_position = config.max_position} {}

absl::StatusOr<std::unique_ptr<MlaModel>> MlaModel::Open(const std::string& folder, DType type) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::string text,
                            ReadTextFile(folder + "/config.json", kMaxConfigBytes));
  absl::StatusOr<MlaConfig> config = ParseHfConfig(text);
  if (!config.ok()) return Annotate(config.status(), folder + "/config.json");
  HOLDFAST_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(folder));
  HOLDFAST_RETURN_IF_ERROR(CheckWeights(checkpoint, *config));
  HOLDFAST_ASSIGN_OR_RETURN(
      MlaBackend attention,
      MlaBackend::Create(
          {.heads = config->heads,
           .latent = config->kv_lora_rank,
           .rope = config->qk_rope,
           .scale = 1.0f / std::sqrt(static_cast<float>(config->qk_nope + config->qk_rope)),
           .type = type}));
  return std::unique_ptr<MlaModel>(
      new MlaModel(*config, type, std::move(checkpoint), std::move(attention)));
}

KvSpec MlaModel::kv() const {
  return {.layers = config_.layers,
          .page_tokens = attention_.config().page_tokens,
          .token_width = config_.kv_lora_rank + config_.qk_rope,
          .type = type_};
}

std::vector<GroupSpec> MlaModel::groups() const {
  return {
      {.tag = kWeightsTag, .role = Role::kImmutable, .extent_bytes = WeightExtent(config_, type_)},
      {.tag = kTablesTag,
       .role = Role::kImmutable,
       .extent_bytes = AlignUp(RopeTableBytes(config_), 256),
       .refilled = true}};
}

std::uint64_t MlaModel::ScratchBound(const BatchShape& shape) const {
  return MlaScratchBound(config_, type_, shape);
}

absl::Status MlaModel::ReserveSpans(Arena& arena) {
  HOLDFAST_RETURN_IF_ERROR(ReserveWeights(config_, type_, arena, weights_));
  // Whoever loads fills `rope_host_` first.
  const Refill refill = [this](Device& device, Stream& stream, AddressRange span) {
    return device.CopyToDevice(stream, span.base, rope_host_.data(), span.bytes);
  };
  HOLDFAST_ASSIGN_OR_RETURN(rope_table_, arena.Reserve({.name = "rope.table",
                                                        .tag = kTablesTag,
                                                        .role = Role::kImmutable,
                                                        .bytes = RopeTableBytes(config_),
                                                        .owner = "model",
                                                        .wake_contents = WakeContents::kPoison,
                                                        .refill = refill}));
  reserved_ = true;
  return absl::OkStatus();
}

absl::Status MlaModel::Load(Arena& arena, const LoadOptions& options) {
  device_ = &arena.device();
  HOLDFAST_RETURN_IF_ERROR(ReserveSpans(arena));
  HOLDFAST_RETURN_IF_ERROR(LoadWeights(checkpoint_, config_, type_, arena, weights_, options));

  HOLDFAST_ASSIGN_OR_RETURN(rope_host_, device_->AllocateHost(RopeTableBytes(config_)));
  FillRopeTable(config_, reinterpret_cast<float*>(rope_host_.data()));
  HOLDFAST_RETURN_IF_ERROR(arena.CommitTag(kTablesTag));
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device_->CreateStream("tables"));
  const AddressRange table = arena.range(rope_table_);
  HOLDFAST_RETURN_IF_ERROR(
      device_->CopyToDevice(*stream, table.base, rope_host_.data(), table.bytes));
  HOLDFAST_RETURN_IF_ERROR(device_->Synchronize(*stream));
  return arena.Seal(kTablesTag);
}

absl::StatusOr<std::unique_ptr<ModelPass>> MlaModel::PlanPass(const BatchShape& shape,
                                                              bool deterministic) {
  if (!reserved_) {
    return MakeError({.kind = ErrorKind::kInternal, .object = "model"},
                     "planned before it was loaded");
  }
  return PlanMlaPass(device_, {.config = &config_,
                               .type = type_,
                               .attention = &attention_,
                               .weights = &weights_,
                               .rope_table = rope_table_,
                               .kv = kv(),
                               .shape = shape,
                               .deterministic = deterministic});
}

}  // namespace holdfast
