#include "tools/plan.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/mla_model.h"

namespace holdfast {
namespace {

absl::Status BadFlag(const std::string& flag, const std::string& why) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = flag}, why);
}

absl::StatusOr<DeviceInfo> DescribeDevice(const PlanOptions& options) {
  if (!options.device_bytes.has_value()) {
    HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(options.device));
    return device->info();
  }
  constexpr std::uint64_t kGranularity = 2 * kMiB;  // of all current GPUs, and of the host device
  if (*options.device_bytes < kGranularity) {
    return BadFlag("--device-bytes", "is less than one granule of 2 MiB");
  }
  if (options.multiprocessors < 1) return BadFlag("--multiprocessors", "must be at least 1");
  const bool is_cuda = options.device != "host";
  DeviceInfo info;
  info.name = is_cuda ? "a GPU" : "host";
  info.spec = options.device;
  info.is_cuda = is_cuda;
  info.granularity = kGranularity;
  info.capacity_bytes = *options.device_bytes;
  info.multiprocessors = options.multiprocessors;
  info.driver = "not asked";
  return info;
}

absl::StatusOr<DType> ChooseType(const std::string& name, bool is_cuda) {
  if (name == "auto") return is_cuda ? DType::kBF16 : DType::kF32;
  if (name == "f32") return DType::kF32;
  if (name == "bf16") return DType::kBF16;
  return BadFlag("--dtype", absl::StrCat("'", name, "' is none of auto, f32, bf16"));
}

}  // namespace

absl::StatusOr<StartPlan> PlanModel(const PlanOptions& options) {
  HOLDFAST_ASSIGN_OR_RETURN(
      const KvBudget budget,
      ChooseKvBudget(options.utilization, options.kv_bytes, options.kv_blocks));
  HOLDFAST_ASSIGN_OR_RETURN(const DeviceInfo device, DescribeDevice(options));
  HOLDFAST_ASSIGN_OR_RETURN(const DType type, ChooseType(options.dtype, device.is_cuda));
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<MlaModel> model, MlaModel::Open(options.model, type));
  EngineOptions engine;
  engine.max_batch = options.max_batch;
  engine.max_prefill_tokens = options.max_prefill_tokens;
  engine.max_sequence = options.max_sequence;
  engine.draft_tokens = options.draft_tokens;
  engine.chunk_bytes = options.chunk_bytes;
  engine.deterministic = options.deterministic;
  engine.set_kv_budget(budget);
  HOLDFAST_ASSIGN_OR_RETURN(engine.workspace_override, ReadWorkspaceOverride(ProcessEnvironment()));
  return PlanStart(device, std::move(model), engine);
}

}  // namespace holdfast
