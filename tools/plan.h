// What `holdfast plan` is asked, and its answer.
#ifndef HOLDFAST_TOOLS_PLAN_H_
#define HOLDFAST_TOOLS_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "device/bytes.h"
#include "runtime/start_plan.h"

namespace holdfast {

struct PlanOptions {
  std::string model;  // folder with config.json and safetensors: their headers are read
  // Where. With device_bytes no device is asked: a GPU of so many bytes, or a host device if
  // `device` is "host".
  std::string device = "auto";
  std::optional<std::uint64_t> device_bytes;
  int multiprocessors = 132;   // of a device that is not asked
  std::string dtype = "auto";  // as for `run`
  // As for `run`
  std::int32_t max_batch = 16;
  std::int32_t max_prefill_tokens = 128;
  std::int32_t max_sequence = 256;
  std::int32_t draft_tokens = 0;
  std::optional<double> utilization;
  std::optional<std::uint64_t> kv_bytes;
  std::optional<std::int64_t> kv_blocks;
  std::uint64_t chunk_bytes = 256 * kMiB;
  bool deterministic = false;
};

// Errors as PlanStart; kInvalidArgument for options it cannot mean.
absl::StatusOr<StartPlan> PlanModel(const PlanOptions& options);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_PLAN_H_
